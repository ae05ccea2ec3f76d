-- Invariants between the journal and the seats, zones and holds of one event ($1 organization, $2 event, $3 rows at most).
-- A change and its fact are committed together and each check is one statement, so writers cause no false alarms.
--
-- Plan: one event at a time, because journal_by_event is the only index that finds the facts of an event. They are joined by
-- hash with the event's seats, zones or active holds, which are fewer. The last fact of a seat or zone is the one with the
-- highest version, so facts are not sorted by time. All checks of an event with 100,000 seats and 1,000,000 facts, in a
-- journal of 2,000,000, took 3 s.
--
-- Versions start again at 1 when seats and zones are created again. Only facts after the last creation count; `seq` decides,
-- because a fact is numbered while its writer holds the lock and a clock can be set back.
--
-- Old months of the journal may have been detached, oldest first. Without the creation on record, a record without facts
-- proves nothing and is skipped.

-- name: ledger_with_a_gap
-- Versions of a seat from 2 on are in the journal, each once, and the last is the seat's own. Seats of an event without
-- zones are still being written, by a publication that has recorded nothing yet.
with created as (
  select max(seq) as seq
    from journal
   where organization_id = $1 and event_id = $2 and kind in ('event_inventory_created', 'event_layout_changed')
), recorded as (
  select j.seat_id, count(*) as n, count(distinct j.version) as own, min(j.version) as least, max(j.version) as most
    from journal j
   where j.organization_id = $1 and j.event_id = $2 and j.seat_id is not null and j.version is not null
     and j.seq > (select seq from created)
   group by j.seat_id
)
select s.event_id || ' ' || s.seat_id as id,
       'the seat has version ' || s.version || ', the journal has ' || coalesce(r.n, 0) || ' entries from version '
         || coalesce(r.least, 0) || ' to ' || coalesce(r.most, 0) as why
  from event_seats s
  left join recorded r on r.seat_id = s.seat_id
 where s.organization_id = $1 and s.event_id = $2
   and (select seq from created) is not null
   and exists (select from event_zones z where z.organization_id = $1 and z.event_id = $2)
   and (coalesce(r.n, 0) <> s.version - 1 or coalesce(r.own, 0) <> s.version - 1
        or (s.version > 1 and (r.least <> 2 or r.most <> s.version)))
 limit $3;

-- name: seat_that_differs_from_its_last_fact
-- A seat without a fact is as it was created. Why a seat is blocked can change without a fact. If the last fact is missing,
-- ledger_with_a_gap reports it.
with created as (
  select max(seq) as seq
    from journal
   where organization_id = $1 and event_id = $2 and kind in ('event_inventory_created', 'event_layout_changed')
), recorded as (
  select j.seat_id, j.version, j.kind, j.data,
         case
           when j.kind in ('seat_reserved', 'seat_hold_extended', 'seat_hold_handed_over') then 'held'
           when j.kind in ('seat_hold_released', 'seat_hold_expired', 'ticket_voided') then 'available'
           when j.kind = 'seat_sold' then 'sold'
           when j.kind = 'seat_blocked' then 'blocked'
           when j.kind = 'seat_unblocked' then coalesce(j.data ->> 'status', 'available')
           else 'in an unknown state'
         end as status
    from journal j
   where j.organization_id = $1 and j.event_id = $2 and j.seat_id is not null and j.version is not null
     and j.seq > coalesce((select seq from created), 0)
), compared as (
  select s.event_id, s.seat_id, s.version, s.status::text as status, s.hold_id, s.ticket_id, s.held_until, r.kind,
         case when r.kind is not null then r.status
              when s.status = 'blocked' and s.blocked_by <> 'staff' then 'blocked'
              else 'available' end as status_recorded,
         case when r.status = 'held' then (r.data ->> 'hold_id')::uuid end as hold_recorded,
         case when r.status = 'sold' then (r.data ->> 'ticket_id')::uuid end as ticket_recorded,
         case when r.status = 'held' then (r.data ->> 'held_until')::timestamptz end as until_recorded
    from event_seats s
    left join recorded r on r.seat_id = s.seat_id and r.version = s.version
   where s.organization_id = $1 and s.event_id = $2 and (s.version = 1 or r.kind is not null)
)
select event_id || ' ' || seat_id as id,
       'the seat is ' || concat_ws(', ', status, 'hold ' || hold_id, 'ticket ' || ticket_id, 'until ' || held_until)
         || coalesce('; its last journal entry, ' || kind || ' at version ' || version || ', says ',
                     '; the journal has no entry for it, so it should be ')
         || concat_ws(', ', status_recorded, 'hold ' || hold_recorded, 'ticket ' || ticket_recorded,
                      'until ' || until_recorded) as why
  from compared
 where (status, hold_id, ticket_id, held_until)
       is distinct from (status_recorded, hold_recorded, ticket_recorded, until_recorded)
 limit $3;

-- name: holder_who_was_never_told
-- Readers of the journal take the actor of a held seat's last fact for its holder.
with created as (
  select max(seq) as seq
    from journal
   where organization_id = $1 and event_id = $2 and kind in ('event_inventory_created', 'event_layout_changed')
)
select s.event_id || ' ' || s.seat_id as id,
       'the seat is held by ' || s.held_by || ', its last journal entry names ' || coalesce(j.actor_id::text, 'nobody') as why
  from event_seats s
  join journal j on j.organization_id = $1 and j.event_id = $2 and j.seat_id = s.seat_id and j.version = s.version
                and j.seq > coalesce((select seq from created), 0)
 where s.organization_id = $1 and s.event_id = $2 and s.status = 'held' and j.actor_id is distinct from s.held_by
 limit $3;

-- name: zone_that_differs_from_its_last_fact
-- Facts of a zone carry its counts. An array is compared by its first number, so the highest is that of the last version.
-- Changing what an event offers raises the version of a zone as well, with one fact for the event instead of the zone.
with created as (
  select max(seq) as seq
    from journal
   where organization_id = $1 and event_id = $2 and kind in ('event_inventory_created', 'event_layout_changed')
), recorded as (
  select case when j.data ? 'zone_held' then (j.data ->> 'zone_id')::uuid end as zone_id, count(*) as n,
         max(array[j.version, (j.data ->> 'zone_held')::bigint, (j.data ->> 'zone_sold')::bigint]) as last
    from journal j
   where j.organization_id = $1 and j.event_id = $2 and j.seat_id is null
     and (j.data ? 'zone_held' or j.kind like 'event\_%') and j.seq > coalesce((select seq from created), 0)
   group by 1
), compared as (
  select z.event_id, z.zone_id, z.version, z.held, z.sold, coalesce(r.n, 0) as n, coalesce(r.last[1], 1) as version_recorded,
         coalesce(r.last[2], 0) as held_recorded, coalesce(r.last[3], 0) as sold_recorded,
         coalesce((select n from recorded where zone_id is null), 0) as changes, (select seq from created) is not null as is_whole
    from event_zones z
    left join recorded r on r.zone_id = z.zone_id
   where z.organization_id = $1 and z.event_id = $2 and (r.zone_id is not null or (select seq from created) is not null)
)
select event_id || ' ' || zone_id as id,
       'the zone has ' || held || ' held and ' || sold || ' sold at version ' || version || '; the journal has ' || n
         || ' entries for it, and the last says ' || held_recorded || ' held and ' || sold_recorded || ' sold at version '
         || version_recorded as why
  from compared
 where held <> held_recorded or sold <> sold_recorded or version < version_recorded
    or (is_whole and version - 1 - n not between 0 and changes)
 limit $3;

-- name: hold_that_differs_from_its_facts
-- A hold is open from its first fact to the one that ends it; an extension only moves its end further away. Open holds have
-- an active row that ends at the same time, and active rows are open. An active hold needs no facts if it is older than what
-- is left of the journal.
with recorded as (
  select (j.data ->> 'hold_id')::uuid as id, max((j.data ->> 'held_until')::timestamptz) as until,
         bool_or(j.kind in ('seat_hold_released', 'seat_hold_expired', 'seat_sold', 'ticket_voided')) as is_over
    from journal j
   where j.organization_id = $1 and j.event_id = $2
     and j.kind in ('seat_reserved', 'seat_hold_extended', 'seat_hold_handed_over', 'seat_hold_released',
                    'seat_hold_expired', 'seat_sold', 'ticket_voided')
   group by 1
), active as (
  select h.id, h.expires_at, h.created_at
    from seat_holds h
   where h.organization_id = $1 and h.event_id = $2 and h.status = 'active'
)
select coalesce(a.id, r.id)::text as id,
       case when a.id is null then 'recorded as held until ' || r.until || ', but there is no such active hold'
            when r.id is null then 'active until ' || a.expires_at || ', but the journal has no entry for it'
            when r.is_over then 'active until ' || a.expires_at || ', but the journal says that it has ended'
            else 'ends at ' || a.expires_at || ', but the journal says ' || r.until end as why
  from recorded r
  full join active a on a.id = r.id
 where case when a.id is null then not r.is_over
            when r.id is null then a.created_at >= (select min(j.recorded_at) from journal j
                                                     where j.organization_id = $1 and j.event_id = $2)
            else r.is_over or a.expires_at is distinct from r.until end
 limit $3;
