-- name: record_all
-- Add facts to the caller's transaction, in the order given: seq is drawn as the rows are read. Their place in the order
-- is asked for once, not for every row.
insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, origin_id, request_id, reason, data)
select $1, (select journal_number()), told.kind, told.event_id, told.seat_id, told.version, told.actor_id,
       told.origin_id, told.request_id, told.reason, told.data::jsonb
  from unnest($2::text[], $3::uuid[], $4::uuid[], $5::bigint[], $6::uuid[], $7::uuid[], $8::uuid[], $9::text[],
              $10::text[])
       as told (kind, event_id, seat_id, version, actor_id, origin_id, request_id, reason, data);

-- name: add_origins
-- Write down where facts came from, each origin once. In the order of their ids, so that two transactions with the same
-- new origins wait for each other instead of in a circle.
insert into origins (organization_id, id, session_id, ip, user_agent)
select $1, seen.id, seen.session_id, seen.ip, seen.user_agent
  from unnest($2::uuid[], $3::uuid[], $4::inet[], $5::text[]) as seen (id, session_id, ip, user_agent)
 order by seen.id
    on conflict (id) do nothing;

-- name: make_partitions
-- system: partitions belong to the installation.
select make_journal_partitions($1);

-- name: read_after
-- system: a reader follows the facts of every organization, strictly after the place ($1, $2).
select xid, seq, recorded_at, kind, organization_id, event_id, seat_id, version, actor_id, origin_id, request_id, reason,
       data
  from read_journal($1, $2, $3);

-- name: read_kinds_after
-- system: of the next $3 facts those whose kind is like one of $4, of one organization where $5 names it; and the last of
-- them all, so that a reader knows how far it has come.
with page as materialized (
  select xid, seq, recorded_at, kind, organization_id, event_id, seat_id, version, actor_id, origin_id, request_id, reason,
         data, kind like any ($4::text[]) and ($5::uuid is null or organization_id = $5) as is_wanted
    from read_journal($1, $2, $3)
)
select xid, seq, recorded_at, kind, organization_id, event_id, seat_id, version, actor_id, origin_id, request_id, reason,
       data, is_wanted, (select count(*) from page) as looked_at
  from page
 where is_wanted or (xid, seq) = (select xid, seq from page order by xid desc, seq desc limit 1)
 order by xid, seq;

-- name: find_start
-- system: the place after which lies everything a reader cannot have seen yet. Numbers of facts start at 1.
select pg_snapshot_xmin(pg_current_snapshot()) as xid, 0::bigint as seq;

-- name: load_position
-- system: how far a reader is, and whether that lies beyond the last transaction of this server.
select xid, seq, xid > pg_snapshot_xmax(pg_current_snapshot()) as is_ahead
  from journal_positions
 where reader = $1;

-- name: save_position
-- system: readers belong to the installation. A slower twin of a reader must not take it back.
insert into journal_positions (reader, xid, seq)
values ($1, $2, $3)
    on conflict (reader) do update
   set xid = excluded.xid, seq = excluded.seq, updated_at = now()
 where (journal_positions.xid, journal_positions.seq) < (excluded.xid, excluded.seq)
returning true;

-- name: plan_for_values
-- system: plan each search for its own values, for the rest of the transaction. A plan for any values could use no index,
-- because every condition of a search may be left out.
select set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: search
-- Facts of one organization, newest first, after the place ($8, $9) of the last page.
select f.xid, f.seq, f.recorded_at, f.kind, f.organization_id, f.event_id, f.seat_id, f.version, f.actor_id,
       f.origin_id, f.request_id, f.reason, f.data,
       o.id is not null as has_origin, o.session_id, o.ip, o.user_agent
  from journal as f
  left join origins as o on o.id = f.origin_id and o.organization_id = f.organization_id
 where f.organization_id = $1
   and ($2::text[] is null or f.kind = any($2))
   and ($3::uuid is null or f.actor_id = $3)
   and ($4::uuid is null or f.event_id = $4)
   and ($5::uuid is null or f.seat_id = $5)
   and ($6::timestamptz is null or f.recorded_at >= $6)
   and ($7::timestamptz is null or f.recorded_at < $7)
   and ($8::timestamptz is null or (f.recorded_at, f.seq) < ($8, $9::bigint))
 order by f.recorded_at desc, f.seq desc
 limit $10;

-- name: empty_origins
-- system: forget the addresses of every organization that are older than $1, a batch at a time.
-- Those that somebody else is emptying are left to them.
with due as (
  select id
    from origins
   where first_seen_at < now() - $1::interval
     and (ip is not null or user_agent is not null)
   order by first_seen_at
   limit $2
     for update skip locked
)
update origins
   set ip = null, user_agent = null
  from due
 where origins.id = due.id;
