-- Make the monthly partitions of the journal from this month on. The owner's right, lent for this one purpose: the
-- application may not change tables. Returns how many were missing.
create or replace function make_journal_partitions(months_ahead integer) returns integer
language plpgsql
security definer
set search_path = public, pg_temp
set timezone = 'UTC'
as $$
declare
  month timestamptz := date_trunc('month', now());
  made integer := 0;
begin
  if months_ahead not between 0 and 36 then
    raise exception 'months_ahead must be from 0 to 36' using errcode = 'invalid_parameter_value';
  end if;
  perform pg_advisory_xact_lock(hashtext('voelgoed journal partitions'));
  for step in 0..months_ahead loop
    if to_regclass(format('journal_%s', to_char(month, 'YYYY_MM'))) is null then
      execute format('create table %I partition of journal for values from (%L) to (%L)',
                     'journal_' || to_char(month, 'YYYY_MM'), month, month + interval '1 month');
      made := made + 1;
    end if;
    month := month + interval '1 month';
  end loop;
  return made;
end
$$;
revoke all on function make_journal_partitions(integer) from public;
grant execute on function make_journal_partitions(integer) to voelgoed_app;

-- A new database can record from its first minute; after that the worker keeps the months ahead.
select make_journal_partitions(12);
