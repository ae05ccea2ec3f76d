-- The one writer of an event's seats and zones. These functions belong to voelgoed_registry, the only role that may write
-- the tables; the application may call them, in a transaction that says whose records they are.
-- Order of locks: the event's row of event_layouts (the caller has it), seats by ordinal, zones by id, the event last.

-- Where a list is matched with seats the planner knows the length of neither: of a hall written a moment ago it has no
-- figures yet, and would go through the whole list for each of 10,000 seats. So these functions join by hashing only.

-- Write down the seats of one piece of a hall, blocked ones as such.
create or replace function inventory_add_seats(
  p_organization uuid, p_event uuid, p_layout uuid, p_version integer, p_first integer, p_last integer,
  p_blocked integer[], p_blocked_by text[]
) returns void
language plpgsql
security definer
set search_path = public, pg_temp
set enable_nestloop = off
as $$
declare
  zones uuid[];  -- by ordinal: to join them would walk all of them for each seat
begin
  select array_agg(zone_id order by ordinal) into zones
    from layout_zones
   where organization_id = p_organization and layout_id = p_layout and version = p_version;
  insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id, status, blocked_by)
  select p_organization, p_event, s.ordinal, s.seat_id, zones[s.zone_ordinal + 1],
         case when b.ordinal is null then 'available' else 'blocked' end::seat_status, b.blocked_by
    from seats s
    left join unnest(p_blocked, p_blocked_by) as b (ordinal, blocked_by) on b.ordinal = s.ordinal
   where s.organization_id = p_organization and s.layout_id = p_layout and s.version = p_version
     and s.ordinal >= p_first and s.ordinal < p_last
   order by s.ordinal;
end
$$;

create or replace function inventory_add_zones(p_organization uuid, p_event uuid, p_zones jsonb) returns void
language plpgsql
security definer
set search_path = public, pg_temp
as $$
begin
  insert into event_zones (organization_id, event_id, ordinal, zone_id, zone_code, name, zone_type, access_mode,
                           membership_tier, allowed_roles, is_enabled, categories, pricing_rule_id, capacity, blocked)
  select p_organization, p_event, z.ordinal, z.zone_id, z.zone_code, z.name, z.zone_type, z.access_mode,
         z.membership_tier, z.allowed_roles, z.is_enabled, z.categories, z.pricing_rule_id, z.capacity, z.blocked
    from jsonb_to_recordset(p_zones)
         as z (ordinal smallint, zone_id uuid, zone_code text, name text, zone_type text, access_mode text,
               membership_tier text, allowed_roles text[], is_enabled boolean, categories jsonb, pricing_rule_id uuid,
               capacity integer, blocked integer);
end
$$;

-- The zones of an event, for whoever will change them after the event itself: they are locked before it.
create or replace function inventory_lock_zones(p_organization uuid, p_event uuid) returns void
language plpgsql
security definer
set search_path = public, pg_temp
as $$
begin
  perform from event_zones where organization_id = p_organization and event_id = p_event order by zone_id for no key update;
end
$$;

-- Remove the places of an event nobody has anything of: how many seats and places sold by number are held or sold, and
-- when there are any, nothing is removed.
create or replace function inventory_remove(p_organization uuid, p_event uuid) returns bigint
language plpgsql
security definer
set search_path = public, pg_temp
as $$
declare
  touched bigint;
begin
  perform from event_seats where organization_id = p_organization and event_id = p_event order by ordinal for update;
  perform from event_zones where organization_id = p_organization and event_id = p_event order by zone_id for update;
  select (select count(*) from event_seats
           where organization_id = p_organization and event_id = p_event and status in ('held', 'sold'))
       + (select coalesce(sum(held + sold), 0) from event_zones
           where organization_id = p_organization and event_id = p_event)
    into touched;
  if touched = 0 then
    delete from event_seats where organization_id = p_organization and event_id = p_event;
    delete from event_zones where organization_id = p_organization and event_id = p_event;
  end if;
  return touched;
end
$$;

-- Remove up to so many seats that were written for an event which was never published with them; how many. Zones are
-- written in the transaction that publishes it, so where there are some, its seats are sold.
create or replace function inventory_clear(p_organization uuid, p_event uuid, p_limit integer) returns integer
language plpgsql
security definer
set search_path = public, pg_temp
as $$
declare
  removed integer;
begin
  perform from event_zones where organization_id = p_organization and event_id = p_event;
  if found then
    return 0;
  end if;
  delete from event_seats
   where organization_id = p_organization and event_id = p_event
     and ordinal in (select ordinal from event_seats
                      where organization_id = p_organization and event_id = p_event order by ordinal limit p_limit);
  get diagnostics removed = row_count;
  return removed;
end
$$;

-- Change what an event offers: take seats out of sale, put others back, and let its zones be as told. False, and nothing
-- done, when somebody holds or has bought what would be taken away. What staff have blocked stays blocked by them.
create or replace function inventory_change(
  p_organization uuid, p_event uuid, p_closed integer[], p_closed_by text[], p_opened integer[], p_zones jsonb,
  p_actor uuid, p_request uuid
) returns boolean
language plpgsql
security definer
set search_path = public, pg_temp
set enable_nestloop = off
as $$
begin
  perform from event_seats
    where organization_id = p_organization and event_id = p_event
      and ordinal = any (p_closed || p_opened)
    order by ordinal for no key update;
  perform from event_zones where organization_id = p_organization and event_id = p_event order by zone_id for no key update;
  perform from event_seats s
     join unnest(p_closed) as c (ordinal) on c.ordinal = s.ordinal
    where s.organization_id = p_organization and s.event_id = p_event and s.status in ('held', 'sold');
  if found then
    return false;
  end if;
  perform from event_zones z
     join jsonb_to_recordset(p_zones) as n (zone_id uuid, kept integer) on n.zone_id = z.zone_id
    where z.organization_id = p_organization and z.event_id = p_event and z.held + z.sold > n.kept;
  if found then
    return false;
  end if;

  -- Out of sale before and after, but for another reason: nothing that anybody could see has changed.
  update event_seats s
     set blocked_by = c.blocked_by
    from unnest(p_closed, p_closed_by) as c (ordinal, blocked_by)
   where s.organization_id = p_organization and s.event_id = p_event and s.ordinal = c.ordinal
     and s.status = 'blocked' and s.blocked_by not in ('staff', c.blocked_by);
  with closed as (
    update event_seats s
       set status = 'blocked', blocked_by = c.blocked_by, version = s.version + 1
      from unnest(p_closed, p_closed_by) as c (ordinal, blocked_by)
     where s.organization_id = p_organization and s.event_id = p_event and s.ordinal = c.ordinal
       and s.status = 'available'
    returning s.seat_id, s.version, s.blocked_by
  ), opened as (
    update event_seats s
       set status = 'available', blocked_by = null, version = s.version + 1
      from unnest(p_opened) as o (ordinal)
     where s.organization_id = p_organization and s.event_id = p_event and s.ordinal = o.ordinal
       and s.status = 'blocked' and s.blocked_by <> 'staff'
    returning s.seat_id, s.version
  )
  insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, data)
  select p_organization, (select journal_number()), told.kind, p_event, told.seat_id, told.version, p_actor, p_request,
         told.data
    from (select 'seat_blocked' as kind, seat_id, version, jsonb_build_object('blocked_by', blocked_by) as data from closed
           union all
          select 'seat_unblocked', seat_id, version, '{}' from opened) as told;

  update event_zones z
     set name = n.name, zone_type = n.zone_type, access_mode = n.access_mode, membership_tier = n.membership_tier,
         allowed_roles = n.allowed_roles, is_enabled = n.is_enabled, categories = n.categories,
         pricing_rule_id = n.pricing_rule_id, capacity = n.capacity, blocked = n.blocked, version = z.version + 1
    from jsonb_to_recordset(p_zones)
         as n (zone_id uuid, name text, zone_type text, access_mode text, membership_tier text, allowed_roles text[],
               is_enabled boolean, categories jsonb, pricing_rule_id uuid, capacity integer, blocked integer)
   where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = n.zone_id
     and (z.name, z.zone_type, z.access_mode, z.membership_tier, z.allowed_roles, z.is_enabled, z.categories,
          z.pricing_rule_id, z.capacity, z.blocked) is distinct from
         (n.name, n.zone_type, n.access_mode, n.membership_tier, n.allowed_roles, n.is_enabled, n.categories,
          n.pricing_rule_id, n.capacity, n.blocked);
  return true;
end
$$;

-- An event that is being given its places is not deleted under the hands of whoever does it.
create or replace function guard_event_layout() returns trigger
language plpgsql
set search_path = public, pg_temp
as $$
begin
  if old.making is not null then
    raise exception 'its places are being made' using errcode = 'foreign_key_violation', constraint = 'event_layouts_making';
  end if;
  return old;
end
$$;

-- A venue does not become smaller than what an event there offers.
create or replace function guard_venue_offer() returns trigger
language plpgsql
set search_path = public, pg_temp
as $$
declare
  larger bigint;
begin
  select max(offered.places) into larger
    from (select sum(z.capacity - z.blocked) as places
            from events e
            join event_zones z on z.organization_id = e.organization_id and z.event_id = e.id
           where e.organization_id = new.organization_id and e.venue_id = new.id
             and e.status in ('published', 'live', 'postponed')
           group by e.id) as offered;
  if larger > new.max_capacity then
    raise exception 'an event of the venue offers % places', larger
      using errcode = 'check_violation', constraint = 'venues_hold_their_events';
  end if;
  return new;
end
$$;

-- Whoever is given a function must be able to make one, as long as it takes to give it.
grant create on schema public to voelgoed_registry;
alter function inventory_add_seats(uuid, uuid, uuid, integer, integer, integer, integer[], text[]) owner to voelgoed_registry;
alter function inventory_add_zones(uuid, uuid, jsonb) owner to voelgoed_registry;
alter function inventory_lock_zones(uuid, uuid) owner to voelgoed_registry;
alter function inventory_remove(uuid, uuid) owner to voelgoed_registry;
alter function inventory_clear(uuid, uuid, integer) owner to voelgoed_registry;
alter function inventory_change(uuid, uuid, integer[], text[], integer[], jsonb, uuid, uuid) owner to voelgoed_registry;
revoke create on schema public from voelgoed_registry;
revoke all on function
  inventory_add_seats(uuid, uuid, uuid, integer, integer, integer, integer[], text[]),
  inventory_add_zones(uuid, uuid, jsonb), inventory_lock_zones(uuid, uuid), inventory_remove(uuid, uuid), inventory_clear(uuid, uuid, integer),
  inventory_change(uuid, uuid, integer[], text[], integer[], jsonb, uuid, uuid)
  from public;
grant execute on function
  inventory_add_seats(uuid, uuid, uuid, integer, integer, integer, integer[], text[]),
  inventory_add_zones(uuid, uuid, jsonb), inventory_lock_zones(uuid, uuid), inventory_remove(uuid, uuid), inventory_clear(uuid, uuid, integer),
  inventory_change(uuid, uuid, integer[], text[], integer[], jsonb, uuid, uuid)
  to voelgoed_app;
