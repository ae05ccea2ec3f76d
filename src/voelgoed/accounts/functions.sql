-- Make the daily partitions of the idempotency keys ahead, and drop those that are past their 48 hours. The owner's right,
-- lent for this one purpose. Returns how many were made. As with the journal's months, nobody waits for it for long.
create or replace function keep_idempotency_partitions(days_ahead integer) returns integer
language plpgsql
security definer
set search_path = public, pg_temp
set timezone = 'UTC'
set lock_timeout = '500ms'
as $$
declare
  day date := current_date - 3;
  part text;
  made integer := 0;
begin
  if days_ahead not between 0 and 60 then
    raise exception 'days_ahead must be from 0 to 60' using errcode = 'invalid_parameter_value';
  end if;
  perform pg_advisory_xact_lock(hashtext('voelgoed idempotency partitions'));
  for part in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'idempotency_keys'::regclass
       -- A case, because the server may look at other tables' names before it looks whose parts they are.
       and case when c.relname ~ '^idempotency_keys_[0-9]{8}$'
                then to_date(right(c.relname, 8), 'YYYYMMDD') < current_date - 3 end
  loop
    execute format('drop table %I', part);
  end loop;
  while day <= current_date + days_ahead loop
    part := 'idempotency_keys_' || to_char(day, 'YYYYMMDD');
    if to_regclass(part) is null then
      execute format('create table %I (like idempotency_keys including all)', part);
      execute format('alter table idempotency_keys attach partition %I for values from (%L) to (%L)', part, day, day + 1);
      made := made + 1;
    end if;
    day := day + 1;
  end loop;
  return made;
end
$$;
revoke all on function keep_idempotency_partitions(integer) from public;
grant execute on function keep_idempotency_partitions(integer) to voelgoed_app;

-- A new database can remember from its first minute; after that the worker keeps the days.
select keep_idempotency_partitions(14);
