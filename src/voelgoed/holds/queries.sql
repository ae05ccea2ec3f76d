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
select zone_id, zone_code, name, zone_type, access_mode, membership_tier, allowed_roles, is_enabled, categories,
       pricing_rule_id, capacity, blocked, held, sold, version
  from event_zones
 where organization_id = $1 and event_id = $2
 order by ordinal;

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

-- name: reserve_batch
select item, verdict, hold_id, held_until, version, state, holder
  from reserve_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: find_holds
-- By id, of any state; the clock that counts beside them.
select id, organization_id, event_id, zone_id, seat_id, user_id, quantity, source, cart_token, created_at,
       initial_expires_at, expires_at, extended_count, status::text as status, ended_at, clock_timestamp() as now
  from seat_holds
 where organization_id = $1 and id = any ($2::uuid[]);

-- name: list_holds_of_user
-- The basket: what somebody holds of an event now.
select id, organization_id, event_id, zone_id, seat_id, user_id, quantity, source, cart_token, created_at,
       initial_expires_at, expires_at, extended_count, status::text as status, ended_at, clock_timestamp() as now
  from seat_holds
 where organization_id = $1 and user_id = $2 and event_id = $3 and status = 'active'
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

-- name: extend_holds
select hold_id, verdict, expires_at, seat_id, created_at
  from hold_extend($1, $2, $3, $4::uuid[], $5, $6);

-- name: release_holds
select hold_id, verdict, seat_id
  from hold_release($1, $2, $3, $4::uuid[], $5, $6, $7, $8);

-- name: convert_holds
select hold_convert($1, $2, $3, $4::uuid[], $5::uuid[], $6::uuid[], $7, $8, $9, $10);

-- name: find_tickets
select id, hold_id, seat_id, zone_id
  from tickets
 where organization_id = $1 and id = any ($2::uuid[]);

-- name: expire_holds
select hold_expire($1, $2, $3);

-- name: release_all_holds
select holds_release_all($1, $2, $3, $4, $5, $6);

-- name: block_seats
select seat_id, verdict, version, was, became
  from seats_block($1, $2, $3::uuid[], $4, $5, $6, $7, $8);

-- name: void_ticket
select ticket_void($1, $2, $3, $4, $5, $6, $7);

-- name: list_lapsed_events
-- system: where holds have lapsed and nobody has tidied them away, the oldest first.
select organization_id, event_id
  from seat_holds
 where status = 'active' and expires_at <= clock_timestamp()
 group by organization_id, event_id
 order by min(expires_at)
 limit $1;

-- name: list_events_to_release
-- system: events on which nothing may be held any more, and something still is.
select h.organization_id, h.event_id, e.status
  from (select distinct organization_id, event_id from seat_holds where status = 'active') as h
  join events e on e.organization_id = h.organization_id and e.id = h.event_id
 where e.status in ('cancelled', 'archived', 'ended', 'draft')
 limit $1;

-- name: get_seat
select e.ordinal, e.seat_id, e.zone_id, e.version, z.name as zone_name, z.row_labels[s.row_ordinal + 1] as row_label,
       s.label, s.category, e.held_by, e.held_until, e.hold_id, clock_timestamp() as now,
       case when e.status = 'held' and e.held_until <= clock_timestamp() then 'available' else e.status::text end as status
  from event_seats e
  join event_layouts l on l.organization_id = $1 and l.event_id = $2
  join seats s on s.organization_id = $1 and s.layout_id = l.layout_id and s.version = l.layout_version
              and s.ordinal = e.ordinal
  join layout_zones z on z.organization_id = $1 and z.layout_id = l.layout_id and z.version = l.layout_version
                     and z.ordinal = s.zone_ordinal
 where e.organization_id = $1 and e.event_id = $2 and e.seat_id = $3;

-- name: name_seats
-- What seats are called, for answers and lists.
select e.seat_id, z.name as zone_name, z.row_labels[s.row_ordinal + 1] as row_label, s.label
  from event_seats e
  join event_layouts l on l.organization_id = $1 and l.event_id = $2
  join seats s on s.organization_id = $1 and s.layout_id = l.layout_id and s.version = l.layout_version
              and s.ordinal = e.ordinal
  join layout_zones z on z.organization_id = $1 and z.layout_id = l.layout_id and z.version = l.layout_version
                     and z.ordinal = s.zone_ordinal
 where e.organization_id = $1 and e.event_id = $2 and e.seat_id = any ($3::uuid[]);

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
