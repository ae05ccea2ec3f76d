-- name: add_layout
insert into layouts (id, organization_id, venue_id, name)
values ($2, $1, $3, $4);

-- name: lock_layout
select id, organization_id, venue_id, name, version_last, serial_last, zone_serials, created_at, updated_at
  from layouts
 where organization_id = $1 and id = $2
   for update;

-- name: get_layout
select id, organization_id, venue_id, name, version_last, serial_last, zone_serials, created_at, updated_at
  from layouts
 where organization_id = $1 and id = $2;

-- name: list_layouts
-- With the version that can be chosen, and the latest that is whole.
select l.id, l.organization_id, l.venue_id, l.name, l.created_at, l.updated_at,
       (select max(version) from layout_versions v
         where v.organization_id = $1 and v.layout_id = l.id and v.geometry_etag is not null) as latest_version,
       (select version from layout_versions v
         where v.organization_id = $1 and v.layout_id = l.id and v.status = 'active') as active_version
  from layouts l
 where l.organization_id = $1
   and ($2::uuid is null or l.venue_id = $2)
   and ($3::uuid is null or l.id > $3)
   and exists (select from layout_versions v
                where v.organization_id = $1 and v.layout_id = l.id and v.geometry_etag is not null)
 order by l.id
 limit $4;

-- name: save_layout
update layouts
   set version_last = $3, serial_last = $4, zone_serials = $5, updated_at = now()
 where organization_id = $1 and id = $2;

-- name: name_layout
update layouts
   set name = $3, updated_at = now()
 where organization_id = $1 and id = $2;

-- name: find_serials
-- Of these codes alone: a layout may have had many more.
select seat_code, serial
  from layout_seats
 where organization_id = $1 and layout_id = $2 and seat_code = any (string_to_array($3, E'\x1f'));

-- name: add_serials
-- New numbers follow one another, so the first is enough.
insert into layout_seats (organization_id, layout_id, seat_code, serial)
select $1, $2, code, $3 + place - 1
  from unnest(string_to_array($4, E'\x1f')) with ordinality as given (code, place);

-- name: add_version
insert into layout_versions (organization_id, layout_id, version, name, description, total_capacity, seat_count, shapes,
                             created_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: add_zones
insert into layout_zones (organization_id, layout_id, version, ordinal, zone_id, zone_code, name, zone_type, capacity,
                          access_mode, membership_tier, allowed_roles, focal_x, focal_y, outline, row_labels, metadata)
select $1, $2, $3, (zone->>'ordinal')::smallint, (zone->>'zone_id')::uuid, zone->>'code', zone->>'name',
       zone->>'zone_type', (zone->>'capacity')::integer, zone->>'access_mode', zone->>'membership_tier',
       array(select jsonb_array_elements_text(zone->'allowed_roles')),
       (zone->'focal_point'->>0)::integer, (zone->'focal_point'->>1)::integer,
       array(select jsonb_array_elements_text(zone->'outline')::integer),
       array(select jsonb_array_elements_text(zone->'row_labels')), zone->'metadata'
  from jsonb_array_elements($4::jsonb) as zone;

-- name: add_seats
-- Columns as one text each, split here: ten times faster than arrays, which the driver encodes value by value. The last
-- eight digits of a seat's id are its serial.
insert into seats (organization_id, layout_id, version, ordinal, seat_id, seat_code, zone_ordinal, row_ordinal, number,
                   label, position, segment, x, y, category, companion_of)
select $1, $2, $3, $4 + given.place - 1, ($5 || lpad(to_hex(given.serial), 8, '0'))::uuid, given.code,
       given.zone_ordinal, given.row_ordinal, given.number, given.label, given.position, given.segment, given.x,
       given.y, given.category, given.companion_of
  from unnest(string_to_array($6, ',')::integer[], string_to_array($7, E'\x1f'),
              string_to_array($8, ',')::smallint[], string_to_array($9, ',')::smallint[],
              string_to_array($10, ',')::integer[], string_to_array($11, E'\x1f'),
              string_to_array($12, ',')::smallint[], string_to_array($13, ',')::smallint[],
              string_to_array($14, ',')::integer[], string_to_array($15, ',')::integer[],
              string_to_array($16, ','), string_to_array($17, ',', '')::integer[])
       with ordinality as given (serial, code, zone_ordinal, row_ordinal, number, label, position, segment, x, y,
                                 category, companion_of, place);

-- name: add_groups
insert into seat_groups (organization_id, layout_id, version, ordinal, zone_ordinal, group_code, kind, label,
                         seat_ordinals, metadata)
select $1, $2, $3, (one->>'ordinal')::integer, (one->>'zone_ordinal')::smallint, one->>'code', one->>'kind',
       one->>'label', array(select jsonb_array_elements_text(one->'seats')::integer), one->'metadata'
  from jsonb_array_elements($4::jsonb) as one;

-- name: finish_version
update layout_versions
   set geometry = $4, geometry_etag = $5, updated_at = now()
 where organization_id = $1 and layout_id = $2 and version = $3 and geometry is null
returning layout_id, version, status, name, description, total_capacity, seat_count, geometry_etag, created_by,
          created_at, updated_at;

-- name: get_version
-- One that is whole; nothing else exists for anybody.
select layout_id, version, status, name, description, total_capacity, seat_count, geometry_etag, created_by,
       created_at, updated_at
  from layout_versions
 where organization_id = $1 and layout_id = $2 and version = $3 and geometry_etag is not null;

-- name: list_versions
select layout_id, version, status, name, description, total_capacity, seat_count, geometry_etag, created_by,
       created_at, updated_at
  from layout_versions
 where organization_id = $1 and layout_id = $2 and geometry_etag is not null and ($3::integer is null or version < $3)
 order by version desc
 limit $4;

-- name: find_latest_version
select max(version)
  from layout_versions
 where organization_id = $1 and layout_id = $2 and version <> $3 and geometry_etag is not null;

-- name: find_active_version
select version
  from layout_versions
 where organization_id = $1 and layout_id = $2 and status = 'active';

-- name: set_version_status
update layout_versions
   set status = $4, updated_at = now()
 where organization_id = $1 and layout_id = $2 and version = $3
returning layout_id, version, status, name, description, total_capacity, seat_count, geometry_etag, created_by,
          created_at, updated_at;

-- name: get_geometry
select geometry, geometry_etag
  from layout_versions
 where organization_id = $1 and layout_id = $2 and version = $3 and geometry is not null;

-- name: get_shapes
select shapes
  from layout_versions
 where organization_id = $1 and layout_id = $2 and version = $3;

-- name: list_zones
select ordinal, zone_id, zone_code, name, zone_type, capacity, access_mode, membership_tier, allowed_roles, focal_x,
       focal_y, outline, row_labels, metadata, created_at, updated_at
  from layout_zones
 where organization_id = $1 and layout_id = $2 and version = $3
 order by ordinal;

-- name: list_seats
select seat_code, zone_ordinal, row_ordinal, number, label, position, segment, x, y, category, companion_of
  from seats
 where organization_id = $1 and layout_id = $2 and version = $3
 order by ordinal;

-- name: list_groups
select zone_ordinal, group_code, kind, label, seat_ordinals, metadata
  from seat_groups
 where organization_id = $1 and layout_id = $2 and version = $3
 order by ordinal;

-- name: find_unfinished
-- system: versions whose making was broken off.
select organization_id, layout_id, version
  from layout_versions
 where geometry is null and created_at < now() - $1::interval
 order by created_at
 limit $2;

-- name: remove_unfinished
select remove_unfinished_version($1, $2, $3);

-- name: get_policy
select allow_reserved_seating, allow_ga_seating, allow_hybrid_ga_reserved, allow_vip_zones, allowed_access_modes,
       enforce_accessibility_rules, companion_release_occupancy_threshold, max_wheelchair_seats_per_booking,
       companion_requires_wheelchair, max_companions_per_wheelchair, accessibility_audit_enabled,
       max_seats_per_booking, orphan_avoidance_strict, group_adjacency_strict, max_group_split,
       prefer_clustering_over_selection, default_hold_ttl_minutes, max_holds_per_user, max_holds_per_ip, locked_fields,
       version, updated_at
  from seating_policies
 where organization_id = $1;

-- name: lock_policy
select allow_reserved_seating, allow_ga_seating, allow_hybrid_ga_reserved, allow_vip_zones, allowed_access_modes,
       enforce_accessibility_rules, companion_release_occupancy_threshold, max_wheelchair_seats_per_booking,
       companion_requires_wheelchair, max_companions_per_wheelchair, accessibility_audit_enabled,
       max_seats_per_booking, orphan_avoidance_strict, group_adjacency_strict, max_group_split,
       prefer_clustering_over_selection, default_hold_ttl_minutes, max_holds_per_user, max_holds_per_ip, locked_fields,
       version, updated_at
  from seating_policies
 where organization_id = $1
   for update;

-- name: add_policy
-- With the defaults, as version 0: whoever adds it changes it next. Of two who add it, one waits for the other.
insert into seating_policies (id, organization_id, version)
values ($2, $1, 0)
on conflict (organization_id) do nothing;

-- name: save_policy
-- The fields in the order of the policy.
update seating_policies
   set allow_reserved_seating = $2, allow_ga_seating = $3, allow_hybrid_ga_reserved = $4, allow_vip_zones = $5,
       allowed_access_modes = $6, enforce_accessibility_rules = $7, companion_release_occupancy_threshold = $8,
       max_wheelchair_seats_per_booking = $9, companion_requires_wheelchair = $10, max_companions_per_wheelchair = $11,
       accessibility_audit_enabled = $12, max_seats_per_booking = $13, orphan_avoidance_strict = $14,
       group_adjacency_strict = $15, max_group_split = $16, prefer_clustering_over_selection = $17,
       default_hold_ttl_minutes = $18, max_holds_per_user = $19, max_holds_per_ip = $20, locked_fields = $21,
       version = version + 1, updated_at = now()
 where organization_id = $1
returning allow_reserved_seating, allow_ga_seating, allow_hybrid_ga_reserved, allow_vip_zones, allowed_access_modes,
          enforce_accessibility_rules, companion_release_occupancy_threshold, max_wheelchair_seats_per_booking,
          companion_requires_wheelchair, max_companions_per_wheelchair, accessibility_audit_enabled,
          max_seats_per_booking, orphan_avoidance_strict, group_adjacency_strict, max_group_split,
          prefer_clustering_over_selection, default_hold_ttl_minutes, max_holds_per_user, max_holds_per_ip,
          locked_fields, version, updated_at;

-- name: list_seat_serials
-- The last eight digits of every seat's id, in the order of the ordinals, as one text: a hall has 100,000 of them.
select coalesce(string_agg(right(seat_id::text, 8), '' order by ordinal), '')
  from seats
 where organization_id = $1 and layout_id = $2 and version = $3;

-- name: get_event_layout
select id, organization_id, event_id, layout_id, layout_version, overrides, version, making, created_at, updated_at
  from event_layouts
 where organization_id = $1 and event_id = $2;

-- name: get_event_pin
select layout_id, layout_version, seating_overrides
  from event_layouts
 where organization_id = $1 and event_id = $2;

-- name: add_event_layout
insert into event_layouts (id, organization_id, event_id)
values ($3, $1, $2)
    on conflict on constraint event_layouts_one_each do nothing;

-- name: lock_event_layout
select id, organization_id, event_id, layout_id, layout_version, overrides, version, making, created_at, updated_at
  from event_layouts
 where organization_id = $1 and event_id = $2
   for update;

-- name: save_event_layout
-- Whoever was writing places of what was there before has nothing to finish any more, but what they wrote is still there.
update event_layouts
   set layout_id = $3, layout_version = $4, overrides = $5, version = version + 1,
       making = case when making is not null then gen_random_uuid() end, updated_at = now()
 where organization_id = $1 and event_id = $2
returning id, organization_id, event_id, layout_id, layout_version, overrides, version, making, created_at, updated_at;

-- name: set_making
update event_layouts
   set making = $3, updated_at = now()
 where organization_id = $1 and event_id = $2;

-- name: share_making
select id
  from event_layouts
 where organization_id = $1 and event_id = $2 and making = $3
   for share;

-- name: find_broken_off
-- system: events whose places were begun and never finished.
select organization_id, event_id
  from event_layouts
 where making is not null and updated_at < now() - $1::interval
 order by updated_at
 limit $2;

-- name: list_pinned_events
select e.id as event_id, e.name, e.status, p.layout_version
  from event_layouts p
  join events e on e.organization_id = p.organization_id and e.id = p.event_id
 where p.organization_id = $1 and p.layout_id = $2
 order by p.layout_version desc, e.effective_start_at, e.id
 limit $3;

-- name: find_organization_showing
-- system: whose layout it is, as long as everybody may see an event that has this version.
select p.organization_id
  from event_layouts p
  join events e on e.organization_id = p.organization_id and e.id = p.event_id
  join organizations o on o.id = p.organization_id
 where p.layout_id = $1 and p.layout_version = $2 and e.status in ('published', 'live', 'postponed')
   and o.suspended_at is null
 limit 1;
