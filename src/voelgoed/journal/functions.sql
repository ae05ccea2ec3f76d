-- Make the monthly partitions of the journal from this month on. The owner's right, lent for this one purpose: the
-- application may not change tables. Returns how many were missing.
-- Each is made apart and then attached: that lets everybody go on recording, while "create table ... partition of" would
-- wait for every reader, and everybody else behind it. Who cannot have the lock soon comes again later.
create or replace function make_journal_partitions(months_ahead integer) returns integer
language plpgsql
security definer
set search_path = public, pg_temp
set timezone = 'UTC'
set lock_timeout = '500ms'
as $$
declare
  part text;
  month timestamptz := date_trunc('month', now());
  made integer := 0;
begin
  if months_ahead not between 0 and 36 then
    raise exception 'months_ahead must be from 0 to 36' using errcode = 'invalid_parameter_value';
  end if;
  perform pg_advisory_xact_lock(hashtext('voelgoed journal partitions'));
  for step in 0..months_ahead loop
    part := 'journal_' || to_char(month, 'YYYY_MM');
    if to_regclass(part) is null then
      execute format('create table %I (like journal including all)', part);
      execute format('alter table journal attach partition %I for values from (%L) to (%L)',
                     part, month, month + interval '1 month');
      made := made + 1;
    end if;
    month := month + interval '1 month';
  end loop;
  return made;
end
$$;
revoke all on function make_journal_partitions(integer) from public;
grant execute on function make_journal_partitions(integer) to voelgoed_app;

-- The next facts after a place, in the journal's order. Only below the oldest transaction that is still running: a fact is
-- never placed below its own transaction's number, so nothing can be added there any more.
-- A function for the sake of its settings: the planner underrates how much lies ahead of a reader that was away, and
-- would sort all of it for every batch instead of walking along the index.
create or replace function read_journal(after_xid xid8, after_seq bigint, facts_max integer) returns setof journal
language plpgsql
stable
set enable_sort = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
    select j.*
      from journal as j
     where (j.xid, j.seq) > (after_xid, after_seq)
       and j.xid < pg_snapshot_xmin(pg_current_snapshot())
     order by j.xid, j.seq
     limit facts_max;
end
$$;
revoke all on function read_journal(xid8, bigint, integer) from public;
grant execute on function read_journal(xid8, bigint, integer) to voelgoed_app;

-- A new database can record from its first minute; after that the worker keeps the months ahead.
select make_journal_partitions(12);
