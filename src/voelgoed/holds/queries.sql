-- name: add_seats
select inventory_add_seats($1, $2, $3, $4, $5, $6, $7::integer[], $8::text[]);

-- name: add_zones
select inventory_add_zones($1, $2, $3::jsonb);

-- name: remove_inventory
select inventory_remove($1, $2);

-- name: clear_seats
select inventory_clear($1, $2, $3);

-- name: change_inventory
select inventory_change($1, $2, $3::integer[], $4::text[], $5::integer[], $6::jsonb, $7, $8);

-- name: lock_zones
select inventory_lock_zones($1, $2);

-- name: list_zones
-- An expired hold holds nothing, although the zone's counter has it until it is recorded as expired.
select z.zone_id, z.zone_code, z.name, z.zone_type, z.access_mode, z.membership_tier, z.allowed_roles, z.is_enabled,
       z.categories, z.pricing_rule_id, z.capacity, z.blocked, z.held - coalesce(expired.quantity, 0) as held, z.sold,
       z.version
  from event_zones z
  left join (select h.zone_id, sum(h.quantity)::integer as quantity
               from seat_holds h
              where h.organization_id = $1 and h.event_id = $2 and h.status = 'active' and h.expires_at <= now()
                and h.seat_id is null
              group by h.zone_id) as expired on expired.zone_id = z.zone_id
 where z.organization_id = $1 and z.event_id = $2
 order by z.ordinal;

-- name: count_seats
-- A hold that has lapsed holds nothing, whether or not somebody has tidied it away.
select zone_id,
       count(*) filter (where status = 'available' or (status = 'held' and held_until <= now())) as available,
       count(*) filter (where status = 'held' and held_until > now()) as held,
       count(*) filter (where status = 'sold') as sold,
       count(*) filter (where status = 'blocked') as blocked
  from event_seats
 where organization_id = $1 and event_id = $2
 group by zone_id;

-- name: list_seats
select e.ordinal, e.seat_id, e.zone_id, e.version, z.name as zone_name, z.row_labels[s.row_ordinal + 1] as row_label,
       s.label, s.category,
       case when e.status = 'held' and e.held_until <= now() then 'available' else e.status::text end as status
  from event_seats e
  join seats s on s.organization_id = $1 and s.layout_id = $3 and s.version = $4 and s.ordinal = e.ordinal
  join layout_zones z on z.organization_id = $1 and z.layout_id = $3 and z.version = $4 and z.ordinal = s.zone_ordinal
 where e.organization_id = $1 and e.event_id = $2 and e.ordinal > $5
   and ($6::uuid is null or e.zone_id = $6)
   and ($7::text is null
        or case when e.status = 'held' and e.held_until <= now() then 'available' else e.status::text end = $7)
 order by e.ordinal
 limit $8;

-- name: list_taken_seats
-- Which seats somebody holds or has bought; of these ordinals, or of all.
select e.seat_id, z.name as zone_name, z.row_labels[s.row_ordinal + 1] as row_label, s.label, e.status::text as status,
       count(*) over () as seat_count
  from event_seats e
  join seats s on s.organization_id = $1 and s.layout_id = $3 and s.version = $4 and s.ordinal = e.ordinal
  join layout_zones z on z.organization_id = $1 and z.layout_id = $3 and z.version = $4 and z.ordinal = s.zone_ordinal
 where e.organization_id = $1 and e.event_id = $2 and e.status in ('held', 'sold')
   and ($5::integer[] is null or e.ordinal = any ($5))
 order by e.ordinal
 limit $6;

-- name: is_touched
select exists (select from event_seats where organization_id = $1 and event_id = $2 and status in ('held', 'sold'))
    or exists (select from event_zones where organization_id = $1 and event_id = $2 and held + sold > 0);

-- name: has_history
-- Whether anybody ever held a place of the event; whoever bought one held it before.
select exists (select from seat_holds where organization_id = $1 and event_id = $2);

-- name: reserve_items
-- Columns and addresses as text: PostgreSQL reads them faster than a client makes objects of them, or arrays.
select item, verdict, hold_id, held_until, version, state, holder, null as first_verdict
  from reserve_items($1, $2, $3::text::integer[], $4::text::uuid[], $5, $6, $7::text::uuid[], $8::text::uuid[],
                     $9::text::uuid[], $10::text::uuid[], $11::text[]::inet[], $12, $13, $14, $15, $16, $17,
                     $18::text[]::inet[], $19, $20);

-- name: reserve_batch
-- The same for requests of which some have an idempotency key.
select item, verdict, hold_id, held_until, version, state, holder, first_verdict
  from reserve_batch($1, $2, $3::text::integer[], $4::text::uuid[], $5, $6, $7::text::uuid[], $8::text::uuid[],
                     $9::text::uuid[], $10::text::uuid[], $11::text[]::inet[], $12, $13, $14, $15, $21, $22, $16, $17,
                     $18::text[]::inet[], $19, $20);

-- name: find_holds
-- By id, of any state; the clock that counts beside them. By the key, as by holds_named: `is true` is what no index is asked.
select id, organization_id, event_id, zone_id, seat_id, user_id, quantity, source, cart_token, created_at,
       initial_expires_at, expires_at, extended_count, status::text as status, ended_at, clock_timestamp() as now
  from seat_holds
 where id = any ($2::uuid[]) and (organization_id = $1) is true;

-- name: list_holds_of_user
-- The basket: what somebody holds of an event now. By ended_at: the index of active holds is for an event's, not a person's.
select id, organization_id, event_id, zone_id, seat_id, user_id, quantity, source, cart_token, created_at,
       initial_expires_at, expires_at, extended_count, status::text as status, ended_at, clock_timestamp() as now
  from seat_holds
 where organization_id = $1 and user_id = $2 and event_id = $3 and ended_at is null
   and created_at > now() - interval '70 minutes' and expires_at > clock_timestamp()
 order by created_at, id
 limit $4;

-- name: list_holds_of_event
-- For those who run the event: everybody's, the next to lapse first; page by the end and the id.
select id, organization_id, event_id, zone_id, seat_id, user_id, quantity, source, cart_token, created_at,
       initial_expires_at, expires_at, extended_count, status::text as status, ended_at, clock_timestamp() as now
  from seat_holds
 where organization_id = $1 and event_id = $2 and status = 'active' and expires_at > clock_timestamp()
   and ($3::timestamptz is null or (expires_at, id) > ($3, $4::uuid))
 order by expires_at, id
 limit $5;

-- name: count_hold_ends
-- What became of the holds of an event that ended since a moment, as the journal has it: sold, lapsed, let go.
select kind, count(*)::integer as count
  from journal
 where organization_id = $1 and event_id = $2 and recorded_at >= $3
   and kind in ('seat_sold', 'seat_hold_expired', 'seat_hold_released')
 group by kind;

-- name: extend_holds
select hold_id, verdict, expires_at, seat_id, created_at
  from hold_extend($1, $2, $3, $4::uuid[], $5, $6);

-- name: release_holds
select hold_id, verdict, seat_id
  from hold_release($1, $2, $3, $4::uuid[], $5, $6, $7, $8);

-- name: hand_over_holds
select event_id, hold_id, seat_id, quantity, verdict
  from holds_hand_over($1, $2, $3, $4, $5, $6, $7, $8);

-- name: convert_holds
select hold_convert($1, $2, $3, $4::uuid[], $5::uuid[], $6::uuid[], $7, $8, $9, $10, $11);

-- name: find_tickets
select id, hold_id, seat_id, zone_id
  from tickets
 where organization_id = $1 and id = any ($2::uuid[]);

-- name: expire_holds
select hold_expire($1, $2, $3, $4);

-- name: release_all_holds
select holds_release_all($1, $2, $3, $4, $5, $6);

-- name: block_seats
select seat_id, verdict, version, was, became
  from seats_block($1, $2, $3::uuid[], $4, $5, $6, $7, $8);

-- name: void_ticket
select ticket_void($1, $2, $3, $4, $5, $6, $7);

-- name: list_events_to_tidy
-- system: events of which a hold has lapsed, and those of which nothing may be held any more; the oldest lapse first. From
-- event to event by the index of what lapses next: to walk everything that is held costs more the more is sold.
with recursive held as (
  (select organization_id, event_id, expires_at from seat_holds
    where status = 'active'
    order by event_id, expires_at limit 1)
   union all
  select following.*
    from held
   cross join lateral (select organization_id, event_id, expires_at from seat_holds
                        where status = 'active' and event_id > held.event_id
                        order by event_id, expires_at limit 1) as following
)
select h.organization_id, h.event_id, h.expires_at <= clock_timestamp() as has_lapsed,
       case when e.status in ('cancelled', 'archived', 'ended', 'draft') then e.status end as closed
  from held h
  left join events e on e.organization_id = h.organization_id and e.id = h.event_id
 where h.expires_at <= clock_timestamp() or e.status in ('cancelled', 'archived', 'ended', 'draft')
 order by h.expires_at
 limit $1;

-- name: get_seat
-- Each step by its own key: a hall written a moment ago has no figures yet, and a plan made without them walks it.
select e.ordinal, e.seat_id, e.zone_id, e.version, z.name as zone_name, z.row_labels[s.row_ordinal + 1] as row_label,
       s.label, s.category, e.held_by, e.held_until, e.hold_id, clock_timestamp() as now,
       case when e.status = 'held' and e.held_until <= clock_timestamp() then 'available' else e.status::text end as status
  from event_layouts l
 cross join lateral (select ordinal, seat_id, zone_id, version, status, held_by, held_until, hold_id from event_seats
                      where organization_id = $1 and event_id = $2 and seat_id = $3 offset 0) as e
 cross join lateral (select zone_ordinal, row_ordinal, label, category from seats
                      where organization_id = $1 and layout_id = l.layout_id and version = l.layout_version
                        and ordinal = e.ordinal offset 0) as s
 cross join lateral (select name, row_labels from layout_zones
                      where organization_id = $1 and layout_id = l.layout_id and version = l.layout_version
                        and ordinal = s.zone_ordinal offset 0) as z
 where l.organization_id = $1 and l.event_id = $2;

-- name: name_seats
-- What seats are called, for answers and lists; each step by its own key, as above.
select e.seat_id, z.name as zone_name, z.row_labels[s.row_ordinal + 1] as row_label, s.label
  from event_layouts l
 cross join unnest($3::uuid[]) as asked (seat_id)
 cross join lateral (select seat_id, ordinal from event_seats
                      where organization_id = $1 and event_id = $2 and seat_id = asked.seat_id offset 0) as e
 cross join lateral (select zone_ordinal, row_ordinal, label from seats
                      where organization_id = $1 and layout_id = l.layout_id and version = l.layout_version
                        and ordinal = e.ordinal offset 0) as s
 cross join lateral (select name, row_labels from layout_zones
                      where organization_id = $1 and layout_id = l.layout_id and version = l.layout_version
                        and ordinal = s.zone_ordinal offset 0) as z
 where l.organization_id = $1 and l.event_id = $2;

-- name: load_names
-- What every seat of an event is called, by ordinal: numbers as one text, rows as columns of bytes.
with seat as (
  select s.zone_ordinal, s.row_ordinal, s.label
    from event_layouts l
    join seats s on s.organization_id = $1 and s.layout_id = l.layout_id and s.version = l.layout_version
   where l.organization_id = $1 and l.event_id = $2
   order by s.ordinal
)
select (select string_agg(label, e'\x1f') from seat) as labels,
       (select string_agg(int2send(zone_ordinal), '') from seat) as zone_ordinals,
       (select string_agg(int4send(row_ordinal), '') from seat) as row_ordinals,
       (select array_agg(z.name order by z.ordinal) from layout_zones z
         where z.organization_id = $1 and z.layout_id = l.layout_id and z.version = l.layout_version) as zone_names,
       (select jsonb_agg(z.row_labels order by z.ordinal) from layout_zones z
         where z.organization_id = $1 and z.layout_id = l.layout_id and z.version = l.layout_version) as row_labels
  from event_layouts l
 where l.organization_id = $1 and l.event_id = $2;

-- name: list_standing
-- system: what is held, by event.
select o.slug as organization, e.slug as event, e.status,
       count(*) filter (where h.expires_at > clock_timestamp()) as active,
       count(*) filter (where h.expires_at <= clock_timestamp()) as lapsed,
       min(h.expires_at) filter (where h.expires_at > clock_timestamp()) as next_lapse_at
  from seat_holds h
  join events e on e.organization_id = h.organization_id and e.id = h.event_id
  join organizations o on o.id = h.organization_id
 where h.status = 'active'
 group by o.slug, e.slug, e.status
 order by active desc
 limit $1;

-- name: load_map
-- All places of an event as one statement sees them: columns by ordinal as bytes, so that a hundred thousand seats are not
-- a hundred thousand objects; who holds what; the zones; the clock. Ordinals come along: the order is looked at, not
-- believed. The seats of a zone follow each other, so a zone is a range; to join them would walk all zones for each seat.
-- Statuses and counters are as recorded: the map decides which holds have expired, now and later.
with seat as (
  select ordinal, seat_id, zone_id, version, status, hold_id, held_by, held_until
    from event_seats
   where organization_id = $1 and event_id = $2
   order by ordinal
), ranges as (
  select array_agg(zone_id) as range_zones, array_agg(first) as firsts, array_agg(seat_count) as seat_counts,
         bool_and(last - first + 1 = seat_count) as are_whole
    from (select zone_id, min(ordinal) as first, max(ordinal) as last, count(*) as seat_count
            from seat group by zone_id) as zone_range
), seats as (
  select string_agg(int4send(ordinal), '') as ordinals,
         string_agg(substring(uuid_send(seat_id) from 13), '') as serials,
         string_agg(int4send(version), '') as versions,
         string_agg(case status when 'available' then '\x00'::bytea when 'held' then '\x01' when 'sold' then '\x02'
                                else '\x03' end, '') as statuses,
         array_agg(ordinal) filter (where status = 'held') as held,
         array_agg(hold_id) filter (where status = 'held') as hold_ids,
         array_agg(held_by) filter (where status = 'held') as holders,
         array_agg(floor(extract(epoch from held_until) * 1000)::bigint) filter (where status = 'held') as untils
    from seat
), zones as (
  select array_agg(zone_id order by ordinal) as zone_ids,
         array_agg(zone_type not in ('reserved_seating', 'vip_reserved') order by ordinal) as are_by_number,
         array_agg(version order by ordinal) as zone_versions,
         array_agg(capacity order by ordinal) as capacities,
         array_agg(blocked order by ordinal) as blocked,
         array_agg(held order by ordinal) as zone_held,
         array_agg(sold order by ordinal) as zone_sold
    from event_zones
   where organization_id = $1 and event_id = $2
), zone_holds as (
  select array_agg(id) as zone_hold_ids, array_agg(zone_id) as zone_hold_zones, array_agg(quantity) as zone_hold_quantities,
         array_agg(floor(extract(epoch from expires_at) * 1000)::bigint) as zone_hold_untils
    from seat_holds
   where organization_id = $1 and event_id = $2 and status = 'active' and seat_id is null
     and exists (select from event_zones where organization_id = $1 and event_id = $2 and held > 0)
)
select seats.*, zones.*, ranges.*, zone_holds.*, e.inventory_epoch,
       (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       (select seat_id from seat limit 1) as first_seat
  from seats, zones, ranges, zone_holds, events e
 where e.organization_id = $1 and e.id = $2 and e.status <> 'draft' and zones.zone_ids is not null;

-- name: count_places
-- The places of an event by zone and state, counted by PostgreSQL, and the numbers that name this state of them. A hold
-- that ends by $3 is not counted, whether or not its expiry is recorded. The next end after that comes along.
with s as materialized (  -- once, and not once for each zone
  select zone_id, sum(version) as version, count(*) as seat_count,
         count(*) filter (where status = 'held' and held_until > $3) as seats_held,
         count(*) filter (where status = 'held' and held_until <= $3) as seats_expired,
         count(*) filter (where status = 'sold') as seats_sold,
         count(*) filter (where status = 'blocked') as seats_blocked
    from event_seats
   where organization_id = $1 and event_id = $2
   group by zone_id
), h as materialized (
  select zone_id, sum(quantity)::integer as quantity, count(*) as hold_count
    from seat_holds
   where organization_id = $1 and event_id = $2 and status = 'active' and expires_at <= $3 and seat_id is null
   group by zone_id
)
select z.zone_id, z.zone_type not in ('reserved_seating', 'vip_reserved') as is_by_number, z.version, z.capacity, z.blocked,
       z.held, z.sold, coalesce(s.version, 0) as seats_version, coalesce(s.seat_count, 0) as seat_count,
       coalesce(s.seats_blocked, 0) as seats_blocked, coalesce(s.seats_held, 0) as seats_held,
       coalesce(s.seats_sold, 0) as seats_sold, coalesce(h.quantity, 0) as quantity_expired,
       coalesce(s.seats_expired, 0) + coalesce(h.hold_count, 0) as expired_count,
       (select floor(extract(epoch from min(expires_at)) * 1000)::bigint from seat_holds
         where organization_id = $1 and event_id = $2 and status = 'active' and expires_at > $3) as next_end_ms
  from event_zones z
  left join s on s.zone_id = z.zone_id
  left join h on h.zone_id = z.zone_id
 where z.organization_id = $1 and z.event_id = $2
 order by z.ordinal;

-- name: find_inventory_epoch
select inventory_epoch from events where organization_id = $1 and id = $2 and status <> 'draft';

-- name: list_materialised
-- system: events that have places somebody may look at, those that are nearest first.
select organization_id, id as event_id
  from events
 where status in ('published', 'live', 'postponed')
 order by effective_start_at desc, id
 limit $1;

-- name: list_events_with_inventory
-- system: events whose seats and zones were created at some time.
select organization_id, id as event_id
  from events
 where inventory_epoch > 0
 order by id;

-- name: list_active_holds
-- What is held of an event now, of seats and by number, with the end of each in milliseconds.
select id, floor(extract(epoch from expires_at) * 1000)::bigint as until_ms
  from seat_holds
 where organization_id = $1 and event_id = $2 and status = 'active'
 limit $3;

-- name: take_lease
-- system: be the one who does this, or go on being it; nothing while somebody else is.
insert into leases (name, holder, held_until)
values ($1, $2, clock_timestamp() + $3::interval)
    on conflict (name) do update
   set holder = excluded.holder, held_until = excluded.held_until
 where leases.holder = excluded.holder or leases.held_until <= clock_timestamp()
returning true;

-- name: next_projection_epoch
-- system: a number that no rebuild ever had.
select nextval('projection_epochs');

-- name: find_database
-- system: which database this is, of all there are: what is told through Redis is told to everybody there.
select (select system_identifier from pg_control_system()) || '.' || oid from pg_database where datname = current_database();

-- name: add_occupancy
-- How full an event is in this minute; the last word of a minute stays.
insert into occupancy_snapshots (organization_id, event_id, taken_at, available, held, sold, blocked, zones)
values ($1, $2, date_trunc('minute', clock_timestamp()), $3, $4, $5, $6, $7::jsonb)
    on conflict (event_id, taken_at) do update
   set available = excluded.available, held = excluded.held, sold = excluded.sold, blocked = excluded.blocked,
       zones = excluded.zones;

-- name: list_occupancy
select taken_at, available, held, sold, blocked
  from occupancy_snapshots
 where organization_id = $1 and event_id = $2 and taken_at >= $3
 order by taken_at desc
 limit $4;

-- name: purge_occupancy
-- system: forget how full events were long ago, a batch at a time.
with due as (
  select event_id, taken_at from occupancy_snapshots where taken_at < now() - $1::interval order by taken_at limit $2
)
delete from occupancy_snapshots o using due where o.event_id = due.event_id and o.taken_at = due.taken_at;

-- name: read_clock
-- system: PostgreSQL's clock.
select clock_timestamp();

-- name: find_lapses_from
-- system: no hold expires before this time, because the clock has stepped; 1970 when it never has.
select greatest(lapses_from, to_timestamp(0)) from clock_guard where id = 1;

-- name: guard_clock
-- system: the clock has jumped by $1: no hold is taken over until so much time has passed. When it jumps back, so does this.
update clock_guard
   set lapses_from = case when $1::interval > interval '0' then greatest(lapses_from, clock_timestamp() + $1)
                          else least(lapses_from, clock_timestamp()) end
returning greatest(lapses_from, to_timestamp(0));
