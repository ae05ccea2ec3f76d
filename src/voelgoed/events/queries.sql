-- name: add_venue
insert into venues (id, organization_id, name, slug, timezone, address, max_capacity, settings)
values ($2, $1, $3, $4, $5, $6, $7, $8)
returning id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at;

-- name: get_venue
select id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at
  from venues
 where organization_id = $1 and id = $2;

-- name: get_venues
select id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at
  from venues
 where organization_id = $1 and id = any ($2::uuid[]);

-- name: find_venue
select id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at
  from venues
 where organization_id = $1 and slug = $2;

-- name: list_venues
select id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at
  from venues
 where organization_id = $1 and ($2::uuid is null or id > $2)
 order by id
 limit $3;

-- name: lock_venue
select id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at
  from venues
 where organization_id = $1 and id = $2
   for update;

-- name: share_venue
-- Its capacity and zone must stay what they are until whoever relies on them has committed.
select id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at
  from venues
 where organization_id = $1 and id = $2
   for share;

-- name: save_venue
update venues
   set name = $3, slug = $4, timezone = $5, address = $6, max_capacity = $7, settings = $8,
       version = version + 1, updated_at = now()
 where organization_id = $1 and id = $2
returning id, organization_id, name, slug, timezone, address, max_capacity, settings, version, inserted_at, updated_at;

-- name: remove_venue
delete from venues
 where organization_id = $1 and id = $2;

-- name: find_larger_events
-- What would not fit into the venue any more; what is over or off does not count.
select id, name, capacity
  from events
 where organization_id = $1 and venue_id = $2 and capacity > $3 and status in ('draft', 'published', 'live', 'postponed')
 order by id
 limit 20;

-- name: add_gate
insert into gates (id, organization_id, venue_id, gate_code, name, status, capacity, settings)
values ($2, $1, $3, $4, $5, $6, $7, $8)
returning id, organization_id, venue_id, gate_code, name, status, capacity, settings, version, inserted_at, updated_at;

-- name: get_gate
select id, organization_id, venue_id, gate_code, name, status, capacity, settings, version, inserted_at, updated_at
  from gates
 where organization_id = $1 and id = $2;

-- name: list_gates
select id, organization_id, venue_id, gate_code, name, status, capacity, settings, version, inserted_at, updated_at
  from gates
 where organization_id = $1 and venue_id = $2 and ($3::text is null or status = $3) and ($4::uuid is null or id > $4)
 order by id
 limit $5;

-- name: lock_gate
select id, organization_id, venue_id, gate_code, name, status, capacity, settings, version, inserted_at, updated_at
  from gates
 where organization_id = $1 and id = $2
   for update;

-- name: save_gate
update gates
   set gate_code = $3, name = $4, status = $5, capacity = $6, settings = $7, version = version + 1, updated_at = now()
 where organization_id = $1 and id = $2
returning id, organization_id, venue_id, gate_code, name, status, capacity, settings, version, inserted_at, updated_at;

-- name: remove_gate
delete from gates
 where organization_id = $1 and id = $2;

-- name: remove_gates_of_venue
delete from gates
 where organization_id = $1 and venue_id = $2
returning id;

-- name: add_event
insert into events (id, organization_id, venue_id, name, slug, description, start_at, end_at, sale_start_at, sale_end_at,
                    capacity, settings, recurrence_group_id, is_automatic)
values ($2, $1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
returning id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
          capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
          postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at;

-- name: get_event
select id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
       capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
       postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at
  from events
 where organization_id = $1 and id = $2;

-- name: find_event
select id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
       capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
       postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at
  from events
 where organization_id = $1 and slug = $2;

-- name: lock_event
select id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
       capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
       postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at
  from events
 where organization_id = $1 and id = $2
   for update;

-- name: read_clock
-- After the locks, in a statement of its own: whoever waited for one must not decide by the time before.
select clock_timestamp();

-- name: save_event
update events
   set venue_id = $3, name = $4, slug = $5, description = $6, status = $7, start_at = $8, end_at = $9,
       sale_start_at = $10, sale_end_at = $11, capacity = $12, settings = $13, replaced_by_event_id = $14,
       recurrence_group_id = $15, rescheduled_at = $16, rescheduled_end_at = $17, postponement_reason = $18,
       is_automatic = $19, inventory_epoch = $20, version = version + 1, updated_at = now()
 where organization_id = $1 and id = $2
returning id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
          capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
          postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at;

-- name: remove_event
delete from events
 where organization_id = $1 and id = $2;

-- name: list_events
-- For the organiser: in the order of time; archived ones only when they are asked for.
select id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
       capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
       postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at
  from events
 where organization_id = $1
   and status = any ($2::text[])
   and ($3::uuid is null or venue_id = $3)
   and ($4::uuid is null or recurrence_group_id = $4)
   and ($5::text is null or position(lower($5) in lower(name)) > 0)
   and ($6::timestamptz is null or (effective_start_at, id) > ($6, $7::uuid))
 order by effective_start_at, id
 limit $8;

-- name: list_events_backwards
-- The same, the latest first.
select id, organization_id, venue_id, name, slug, description, status, start_at, end_at, sale_start_at, sale_end_at,
       capacity, settings, replaced_by_event_id, recurrence_group_id, rescheduled_at, rescheduled_end_at,
       postponement_reason, is_automatic, version, inventory_epoch, inserted_at, updated_at
  from events
 where organization_id = $1
   and status = any ($2::text[])
   and ($3::uuid is null or venue_id = $3)
   and ($4::uuid is null or recurrence_group_id = $4)
   and ($5::text is null or position(lower($5) in lower(name)) > 0)
   and ($6::timestamptz is null or (effective_start_at, id) < ($6, $7::uuid))
 order by effective_start_at desc, id desc
 limit $8;

-- name: list_upcoming
-- What a storefront lists: shown, and not over as things stand. The index of these holds nothing else; the page is cut
-- before the venues are looked up, so that nothing can tempt the planner away from it.
select e.id, e.organization_id, e.name, e.slug, e.status, e.start_at, e.end_at, e.sale_start_at, e.sale_end_at,
       e.capacity, e.rescheduled_at, e.rescheduled_end_at, e.postponement_reason, e.replaced_by_event_id, e.settings,
       e.version, v.id as venue_id, v.name as venue_name, v.slug as venue_slug, v.timezone,
       v.settings as venue_settings
  from (select id, organization_id, venue_id, name, slug, status, start_at, end_at, sale_start_at, sale_end_at, capacity,
               rescheduled_at, rescheduled_end_at, postponement_reason, replaced_by_event_id, settings, version,
               effective_start_at
          from events
         where organization_id = $1
           and status in ('published', 'live', 'postponed')
           and effective_end_at >= now()
           and ($2::uuid is null or venue_id = $2)
           and ($3::timestamptz is null or (effective_start_at, id) > ($3, $4::uuid))
         order by effective_start_at, id
         limit $5) e
  join venues v on v.organization_id = $1 and v.id = e.venue_id
 order by e.effective_start_at, e.id;

-- name: get_detail
-- Shown events only; the one that replaces it is told of when it is shown as well.
select e.id, e.organization_id, e.name, e.slug, e.status, e.start_at, e.end_at, e.sale_start_at, e.sale_end_at,
       e.capacity, e.rescheduled_at, e.rescheduled_end_at, e.postponement_reason, e.replaced_by_event_id, e.settings,
       e.version, v.id as venue_id, v.name as venue_name, v.slug as venue_slug, v.timezone,
       v.settings as venue_settings, e.description, v.address,
       r.id as replacement_id, r.slug as replacement_slug, r.name as replacement_name
  from events e
  join venues v on v.organization_id = $1 and v.id = e.venue_id
  left join events r on r.organization_id = $1 and r.id = e.replaced_by_event_id
                    and r.status in ('published', 'live', 'postponed')
 where e.organization_id = $1
   and e.id = $2
   and e.status in ('published', 'live', 'postponed');

-- name: find_shown_event
select id
  from events
 where organization_id = $1 and slug = $2 and status in ('published', 'live', 'postponed');

-- name: find_organization_of_event
-- system: whoever follows a link to an event knows the event, not the organization; a closed one shows nothing.
select e.organization_id, o.slug, o.name
  from events e
  join organizations o on o.id = e.organization_id
 where e.id = $1 and o.suspended_at is null;

-- name: lock_replacements
-- Two links that are made at once could close a ring that neither of them sees.
select pg_advisory_xact_lock(hashtextextended('voelgoed replacements ' || $1::uuid, 0));

-- name: follow_replacements
-- The chain of events that replace one another, beginning with this one; a ring shows by containing its beginning.
with recursive chain (id, next, depth) as (
  select id, replaced_by_event_id, 1 from events where organization_id = $1 and id = $2
  union all
  select e.id, e.replaced_by_event_id, c.depth + 1
    from events e join chain c on e.id = c.next
   where e.organization_id = $1 and c.depth < 100
)
select id from chain;

-- name: list_due
-- system: what the clock has to move, of every organization.
(select organization_id, id
   from events
  where is_automatic and status in ('published', 'postponed') and effective_start_at <= now()
    and (status = 'published' or rescheduled_at is not null)
  order by effective_start_at
  limit $1)
union all
(select organization_id, id
   from events
  where is_automatic and status = 'live' and effective_end_at <= now()
  order by effective_end_at
  limit $1);

-- name: touch_catalogue
insert into event_catalogues (organization_id, version)
values ($1, 2)
on conflict (organization_id) do update set version = event_catalogues.version + 1
returning version;

-- name: get_catalogue
select version, staff_may_change_venues
  from event_catalogues
 where organization_id = $1;

-- name: set_policy
insert into event_catalogues (organization_id, version, staff_may_change_venues)
values ($1, 2, $2)
on conflict (organization_id) do update set staff_may_change_venues = $2, version = event_catalogues.version + 1
returning version;
