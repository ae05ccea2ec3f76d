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

-- name: list_counted_zones
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
