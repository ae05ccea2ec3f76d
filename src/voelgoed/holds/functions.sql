-- The one writer of an event's seats and zones. These functions belong to voelgoed_registry, the only role that may write
-- the tables; the application may call them, in a transaction that says whose records they are.
-- Order of locks: the event's row of event_layouts (the caller has it), seats by ordinal, people and addresses by hash,
-- holds of places sold by number by id, zones by id, the event last.

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
  insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id, is_wheelchair, status, blocked_by)
  select p_organization, p_event, s.ordinal, s.seat_id, zones[s.zone_ordinal + 1], s.category = 'wheelchair',
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
  perform from seat_holds h
    where h.organization_id = p_organization and h.event_id = p_event and h.seat_id is null and h.status = 'active'
    order by h.id
      for no key update;
  perform from event_zones where organization_id = p_organization and event_id = p_event order by zone_id for update;
  perform hold_lapse(p_organization, p_event,
                     array(select h.id from seat_holds h
                            where h.organization_id = p_organization and h.event_id = p_event and h.status = 'active'
                              and h.expires_at <= (select lapse_clock(clock_timestamp()))),
                     null, clock_timestamp());
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
  last integer;
  removed integer;
begin
  perform from event_zones where organization_id = p_organization and event_id = p_event;
  if found then
    return 0;
  end if;
  -- Up to the last of so many, and not by a list of them: that would be a join, see above.
  select ordinal into last from event_seats
   where organization_id = p_organization and event_id = p_event order by ordinal offset p_limit - 1 limit 1;
  delete from event_seats
   where organization_id = p_organization and event_id = p_event and (last is null or ordinal <= last);
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
  perform hold_lapse(p_organization, p_event,
                     array(select s.hold_id from event_seats s
                             join unnest(p_closed) as c (ordinal) on c.ordinal = s.ordinal
                            where s.organization_id = p_organization and s.event_id = p_event and s.status = 'held'
                              and s.held_until <= (select lapse_clock(clock_timestamp()))),
                     null, clock_timestamp());
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

-- HOLDS. Every call sets its organization itself, locks in one order (seats by ordinal, users and addresses by hash, holds
-- of places sold by number, zones by id; what is skipped when somebody is at it has no order, for nobody waits there), reads
-- the clock after all locks and the event after the clock. A statement of its own for each step: it sees what was committed
-- while the one before it waited. What is called from outside, hold_end and lock_holds have one plan each, made by their own
-- settings (decision 0017); what they call and reads no more than a row or two has those of its caller.

-- What holds for bookings of an event: its organization's policy, with what the event may say otherwise on top.
create or replace function hold_rules(
  p_organization uuid, p_event uuid,
  out ttl interval, out seats_max integer, out wheelchairs_max integer, out holds_max integer, out holds_per_ip_max integer
)
language plpgsql
stable
set search_path = public, pg_temp
as $$
declare
  said jsonb;
  locked text[];
  enforced boolean;
begin
  select p.locked_fields, make_interval(mins => p.default_hold_ttl_minutes), p.max_seats_per_booking,
         p.max_wheelchair_seats_per_booking, p.max_holds_per_user, p.max_holds_per_ip, p.enforce_accessibility_rules
    into locked, ttl, seats_max, wheelchairs_max, holds_max, holds_per_ip_max, enforced
    from seating_policies p
   where p.organization_id = p_organization;
  if not found then  -- nobody has said anything: seating/policy.py has the same, and a test compares them
    locked := '{}'; ttl := '10 minutes'; seats_max := 10; wheelchairs_max := 1; enforced := true;
  end if;
  select l.seating_overrides into said
    from event_layouts l
   where l.organization_id = p_organization and l.event_id = p_event;
  if said is not null and said <> '{}' then
    said := said - locked;
    ttl := coalesce(make_interval(mins => (said->>'default_hold_ttl_minutes')::integer), ttl);
    seats_max := coalesce((said->>'max_seats_per_booking')::integer, seats_max);
    wheelchairs_max := coalesce((said->>'max_wheelchair_seats_per_booking')::integer, wheelchairs_max);
    enforced := coalesce((said->>'enforce_accessibility_rules')::boolean, enforced);
    if said ? 'max_holds_per_user' then
      holds_max := (said->>'max_holds_per_user')::integer;
    end if;
  end if;
  if not enforced then
    wheelchairs_max := null;
  end if;
end
$$;

-- Return the moment up to which holds have expired: `p_now`, or -infinity when the clock cannot be trusted. It cannot be
-- trusted until `clock_guard.lapses_from`, nor when it is past the latest time that the calling process believes possible
-- (`app.clock_latest`): then the clock has stepped ahead, and live holds must not be taken over.
create or replace function lapse_clock(p_now timestamptz) returns timestamptz
language sql
stable
set search_path = public, pg_temp
as $$
  select case when p_now < g.lapses_from or p_now > nullif(current_setting('app.clock_latest', true), '')::timestamptz
              then '-infinity' else p_now end
    from clock_guard g
   where g.id = 1
$$;

-- Move the counters of a zone sold by number, and tell a fact for each hold with what the zone has come to. The one place
-- where held and sold change.
create or replace function zone_move(
  p_organization uuid, p_event uuid, p_zone uuid, p_held integer, p_sold integer, p_kind text, p_holds uuid[],
  p_quantities integer[], p_until timestamptz, p_actors uuid[], p_requests uuid[], p_origins uuid[], p_data jsonb
) returns integer
language plpgsql
set search_path = public, pg_temp
as $$
declare
  before integer;
  zone_held integer;
  zone_sold integer;
begin
  update event_zones
     set held = held + p_held, sold = sold + p_sold, version = version + cardinality(p_holds)
   where organization_id = p_organization and event_id = p_event and zone_id = p_zone
  returning version - cardinality(p_holds), held, sold into strict before, zone_held, zone_sold;
  insert into journal (organization_id, xid, kind, event_id, version, actor_id, request_id, origin_id, data)
  select p_organization, (select journal_number()), p_kind, p_event, before + i, p_actors[i], p_requests[i], p_origins[i],
         p_data || jsonb_build_object('zone_id', p_zone, 'hold_id', p_holds[i], 'quantity', p_quantities[i],
                                      'held_until', p_until, 'zone_held', zone_held, 'zone_sold', zone_sold)
    from generate_subscripts(p_holds, 1) as i;
  return before + cardinality(p_holds);
end
$$;

-- Holds by their ids, found by their key: PostgreSQL is not asked to choose. Told an organization, an event and a status as
-- well, it takes an index of one of these whenever it believes that hardly any are active, as it does when a sale begins,
-- and walks every hold of the event for one. It looks through this function, so it has no settings of its own. For the same
-- reason somebody's holds that have not ended are asked for by ended_at: the indexes of active ones are for an event's.
create or replace function holds_named(p_holds uuid[]) returns setof seat_holds
language sql
stable
as $$
  select * from seat_holds where id = any (p_holds) offset 0
$$;

-- Whether a row of event_seats is this seat of this event, asked as only the index of seats can be asked. An event whose
-- seats were written a minute ago is in no figures, and PostgreSQL would rather read what it takes for one or a few of them,
-- though it is a stadium.
create or replace function is_seat(p_seat_id uuid, p_event_id uuid, p_seat uuid, p_event uuid) returns boolean
language sql
immutable
as $$
  select p_seat_id = p_seat and (p_seat_id, p_event_id) >= (p_seat, p_event) and (p_seat_id, p_event_id) <= (p_seat, p_event)
$$;

-- Seats by their ids. Where a statement of this file changes rows by their ctid they were locked before: there they stay.
create or replace function seats_named(p_organization uuid, p_event uuid, p_seats uuid[]) returns setof event_seats
language sql
stable
as $$
  select s.*
    from unnest(p_seats) as n (id)
   cross join lateral (select * from event_seats e
                        where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, n.id, p_event)
                       offset 0) as s
$$;

-- Give active holds of one event back: their seats become available, their places can be had again. The caller has locked
-- seats, holds and zones. How many there were.
create or replace function hold_end(
  p_organization uuid, p_event uuid, p_holds uuid[], p_status hold_status, p_kind text, p_actor uuid, p_request uuid,
  p_origin uuid, p_now timestamptz, p_data jsonb default '{}'
) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = on
set search_path = public, pg_temp
as $$
declare
  ended integer;
  by_number uuid[];
  z record;
begin
  if not cardinality(p_holds) > 0 then
    return 0;
  end if;
  with gone as (
    update seat_holds h
       set status = p_status, ended_at = p_now, updated_at = p_now
     where h.id = any (p_holds) and h.event_id = p_event and h.ended_at is null  -- no more than its key can find, as above
    returning h.id, h.seat_id, h.user_id
  ), seat as (
    update event_seats s
       set status = 'available', hold_id = null, held_by = null, held_until = null, locked_at = null,
           version = s.version + 1
      from gone g
     where s.organization_id = p_organization and is_seat(s.seat_id, s.event_id, g.seat_id, p_event) and s.hold_id = g.id
    returning s.seat_id, s.version, g.id, g.user_id
  ), fact as (
    insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
    select p_organization, (select journal_number()), p_kind, p_event, seat_id, version, p_actor, p_request, p_origin,
           p_data || jsonb_object(array['hold_id', id::text, 'user_id', user_id::text])
      from seat
  )
  select count(*), array_agg(id) filter (where seat_id is null) into ended, by_number from gone;
  if by_number is not null then
    for z in select h.zone_id, sum(h.quantity)::integer as quantity, array_agg(h.id order by h.id) as ids,
                    array_agg(h.quantity order by h.id) as quantities
               from holds_named(by_number) as h
              where h.organization_id = p_organization
              group by h.zone_id
              order by h.zone_id
    loop
      perform zone_move(p_organization, p_event, z.zone_id, -z.quantity, 0, p_kind, z.ids, z.quantities, null,
                        array_fill(p_actor, array[cardinality(z.ids)]), array_fill(p_request, array[cardinality(z.ids)]),
                        array_fill(p_origin, array[cardinality(z.ids)]), p_data);
    end loop;
  end if;
  return ended;
end
$$;

-- The same for holds whose end has come: nobody did it, whoever noticed.
create or replace function hold_lapse(
  p_organization uuid, p_event uuid, p_holds uuid[], p_request uuid, p_now timestamptz
) returns integer
language sql
set search_path = public, pg_temp
as $$
  select hold_end(p_organization, p_event, p_holds, 'expired', 'seat_hold_expired', null, p_request, null, p_now,
                  '{"reason": "ttl_expired"}')
$$;

-- Whether somebody may book in a zone. Whitelists let nobody in until they are built.
create or replace function may_book(
  p_organization uuid, p_user uuid, p_role text, p_now timestamptz, p_mode text, p_tier text, p_roles text[]
) returns boolean
language sql
stable
set search_path = public, pg_temp
as $$
  select case p_mode
    when 'public' then true
    when 'role_based' then coalesce(p_role = any (p_roles), false)  -- who is nothing is let in nowhere
    when 'membership_tier' then exists (
      select from memberships m
       where m.organization_id = p_organization and m.user_id = p_user and m.tier = p_tier and m.status = 'active'
         and m.valid_from <= p_now and (m.valid_to is null or m.valid_to > p_now))
    else false
  end
$$;

-- Why nobody can be given a hold of an event now; null when they can. Both ends of the sale belong to it.
create or replace function sale_refusal(p_event events, p_now timestamptz) returns text
language sql
immutable
as $$
  select case
    when p_event.id is null or p_event.status = 'draft' then 'event_not_found'
    when p_event.status in ('cancelled', 'archived') then 'event_unavailable'
    when p_event.status = 'ended' or (p_event.status = 'postponed' and p_event.rescheduled_at is null)
      then 'event_not_available'
    when p_now < p_event.sale_start_at or p_now > coalesce(p_event.sale_end_at, p_event.effective_end_at)
      then 'event_sales_closed'
  end
$$;

-- Hold seats and places for many requests at once. An item is a seat, or a zone with a quantity. Items with one number are
-- one request, which is granted whole or not at all; lower numbers came first. A row for each item:
--   created existing | seat_not_found seat_held_by_another_user seat_not_available zone_access_denied group_refused
--   busy | rate_limited max_seats_exceeded max_wheelchair_seats_exceeded max_holds_exceeded
--   | zone_not_found block_at_capacity | event_...
-- `held_until` is the end of the hold in the way, too, and for rate_limited when to come again.
-- Where the asks came from is written as far as it was not before: in one call, so in one commit.
-- Each statement costs its beginning, whatever it finds: what cannot find anything is passed over.
-- Of quantities, addresses, sources, roles and who is staff one is enough where it is the same for all.
-- Requests with an idempotency key go through reserve_batch.
create or replace function reserve_items(
  p_organization uuid, p_event uuid, p_asks integer[], p_seats uuid[], p_zones uuid[], p_quantities integer[],
  p_users uuid[], p_holds uuid[], p_requests uuid[], p_origins uuid[], p_ips inet[], p_carts text[], p_sources text[],
  p_roles text[], p_are_staff boolean[], p_new_origins uuid[], p_sessions uuid[], p_origin_ips inet[],
  p_user_agents text[], p_clock_latest text
)
returns table (
  item integer, verdict text, hold_id uuid, held_until timestamptz, version integer, state text, holder uuid
)
language plpgsql
security definer
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  event events;
  rules record;
  moment timestamptz;
  until timestamptz;
  refusal text;
  locked uuid[];
  places integer[];
  tids tid[];
  free integer;
  asked integer;
  by_number integer;
  lapsed uuid[];
  seat_zones uuid[];
  wheelchairs uuid[];
  is_simple boolean;
  items_n integer;
  given integer;
begin
  perform set_config('app.organization_id', p_organization::text, true),
          set_config('app.clock_latest', coalesce(p_clock_latest, ''), true);
  items_n := cardinality(p_asks);
  if not array[cardinality(p_quantities), cardinality(p_ips), cardinality(p_sources), cardinality(p_roles),
               cardinality(p_are_staff)] <@ array[1, items_n] then
    raise exception 'a column of a batch has one value, or one for each item';
  end if;
  if cardinality(p_quantities) < items_n then p_quantities := array_fill(p_quantities[1], array[items_n]); end if;
  if cardinality(p_ips) < items_n then p_ips := array_fill(p_ips[1], array[items_n]); end if;
  if cardinality(p_sources) < items_n then p_sources := array_fill(p_sources[1], array[items_n]); end if;
  if cardinality(p_roles) < items_n then p_roles := array_fill(p_roles[1], array[items_n]); end if;
  if cardinality(p_are_staff) < items_n then p_are_staff := array_fill(p_are_staff[1], array[items_n]); end if;
  if cardinality(p_new_origins) > 0 then
    insert into origins (organization_id, id, session_id, ip, user_agent)
    select p_organization, o.id, o.session, o.ip, o.agent
      from unnest(p_new_origins, p_sessions, p_origin_ips, p_user_agents) as o (id, session, ip, agent)
     order by o.id
        on conflict (id) do nothing;
  end if;
  select * into rules from hold_rules(p_organization, p_event);

  -- Seats. Whoever is at one of them now is not waited for, so no order is needed: that ask comes again in the next batch.
  with taken as materialized (
    select n.place, s.*
      from (select distinct on (n.id) n.id, n.place from unnest(p_seats) with ordinality as n (id, place)
             order by n.id, n.place) as n
     cross join lateral (select e.ctid as tid, e.seat_id, e.status, e.zone_id, e.is_wheelchair
                           from event_seats e
                          where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, n.id, p_event)
                            for no key update skip locked) as s
  )
  select array_agg(t.seat_id), array_agg(t.place), array_agg(t.tid), count(*) filter (where t.status = 'available'),
         array_agg(distinct t.zone_id), array_agg(t.seat_id) filter (where t.is_wheelchair)
    into locked, places, tids, free, seat_zones, wheelchairs
    from taken t;

  -- People, and addresses where they are counted: limits are exact when one asks in many places at once.
  perform pg_advisory_xact_lock(k)
     from (select distinct k
             from (select uuid_hash_extended(u, 0) # uuid_hash_extended(p_organization, 1) as k
                     from unnest(p_users, p_are_staff) as who (u, is_staff) where not is_staff
                    union all
                   select hashtextextended(host(a), 2) # uuid_hash_extended(p_organization, 1)
                     from unnest(p_ips, p_are_staff) as whence (a, is_staff)
                    where rules.holds_per_ip_max is not null and a is not null and not is_staff) as keys
            order by 1) as ordered;

  asked := cardinality(array_remove(p_seats, null));
  by_number := items_n - asked;

  if by_number > 0 then
    perform from event_zones z
      where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = any (p_zones)
      order by z.zone_id
        for no key update;
  end if;

  moment := clock_timestamp();
  select * into event from events e where e.organization_id = p_organization and e.id = p_event;
  refusal := sale_refusal(event, moment);
  if refusal is not null then
    return query select i, refusal, null::uuid, null::timestamptz, null::integer, event.status, null::uuid
                   from generate_subscripts(p_asks, 1) as i;
    return;
  end if;
  until := moment + rules.ttl;

  -- Lapsed holds of these seats end first, in a statement of their own: the index of active holds must see it.
  if free < cardinality(locked) then
    select array_agg(s.hold_id) into lapsed
      from seats_named(p_organization, p_event, locked) as s
     where s.status = 'held' and s.held_until <= (select lapse_clock(moment));
    if lapsed is not null then
      perform hold_lapse(p_organization, p_event, lapsed, null, moment);
    end if;
  end if;

  is_simple := asked > 0 and free = asked and rules.holds_max is null and rules.holds_per_ip_max is null;
  if is_simple and wheelchairs is not null and rules.wheelchairs_max is not null then
    is_simple := not exists (
      select from (select u, count(*) as n
                     from unnest(p_users, p_seats, p_are_staff) as x (u, s, is_staff)
                    where s = any (wheelchairs) and not is_staff group by u) as a
       where a.n + (select count(*)
                      from seat_holds h
                      join event_seats w on w.organization_id = p_organization and w.is_wheelchair
                                        and is_seat(w.seat_id, w.event_id, h.seat_id, p_event)
                     where h.organization_id = p_organization and h.user_id = a.u
                       and h.created_at > moment - interval '70 minutes' and h.event_id = p_event
                       and h.ended_at is null) > rules.wheelchairs_max);
  end if;
  if is_simple
     and not exists (select from event_zones z
                      where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = any (seat_zones)
                        and z.access_mode <> 'public')
     and not exists (select from (select u, count(*) as n
                                    from unnest(p_users, p_seats, p_are_staff) as x (u, s, is_staff)
                                   where s is not null and not is_staff group by u) as a
                       left join lateral (select sum(h.quantity) as n
                                            from seat_holds h
                                           where h.organization_id = p_organization and h.user_id = a.u
                                             and h.created_at > moment - interval '70 minutes') as b on true
                      where a.n + coalesce(b.n, 0) > least(10, rules.seats_max)) then
    -- Nothing in the way: every seat free, open to everybody, nobody near a limit. So nothing was done to these rows since
    -- they were locked, and they are where they were.
    return query
    with seat as (
      update event_seats s
         set status = 'held', hold_id = p_holds[n.place], held_by = p_users[n.place], held_until = until, locked_at = moment,
             version = s.version + 1
        from unnest(places, tids) as n (place, tid)
       where s.ctid = n.tid
      returning n.place, s.seat_id, s.zone_id, s.version
    ), hold as (
      insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, source, client_ip, cart_token,
                              created_at, initial_expires_at, expires_at, updated_at)
      select p_holds[place], p_organization, p_event, zone_id, seat_id, p_users[place], p_sources[place], p_ips[place],
             p_carts[place], moment, until, until, moment
        from seat
    ), fact as (
      insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
      select p_organization, (select journal_number()), 'seat_reserved', p_event, seat_id, version, p_users[place],
             p_requests[place], p_origins[place],
             jsonb_build_object('hold_id', p_holds[place], 'held_until', until, 'source', p_sources[place])
        from seat
    )
    select place, 'created', p_holds[place], until, version, null::text, null::uuid from seat;
    get diagnostics given = row_count;
    if given <> asked then
      raise exception 'every seat was free and locked, and % of % were there', given, asked;
    end if;
  elsif asked > 0 then
    return query
    with recursive item as (
      select *
        from unnest(p_asks, p_seats, p_users, p_holds, p_requests, p_origins, p_ips, p_carts, p_sources, p_roles,
                    p_are_staff)
             with ordinality as i (ask, seat, u, hold, request, origin, ip, cart, source, role, is_staff, place)
       where i.seat is not null
    ), judged as materialized (  -- each of these is looked at more than once, and must not be worked out again
      select i.*, s.zone_id, s.version, s.is_wheelchair, s.hold_id as old_hold, s.held_until as old_until,
             s.held_by,
             s.status::text as seat_state,
             case
               when s.seat_id is null then 'seat_not_found'
               when not i.seat = any (coalesce(locked, '{}')) then 'busy'
               when s.status = 'held' and s.held_by = i.u then 'existing'
               when s.status = 'held' then 'seat_held_by_another_user'
               when s.status <> 'available' then 'seat_not_available'
               when z.access_mode <> 'public'
                    and not may_book(p_organization, i.u, i.role, moment, z.access_mode, z.membership_tier, z.allowed_roles)
                 then 'zone_access_denied'
               when exists (select from item j where j.seat = i.seat and j.place < i.place) then 'busy'
               else 'created'
             end as own
        from item i
        left join lateral (select * from event_seats e
                            where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, i.seat, p_event)
                           offset 0) as s on true
        left join event_zones z on z.organization_id = p_organization and z.event_id = p_event and z.zone_id = s.zone_id
    ), grouped as (
      select *, bool_and(own in ('created', 'existing')) over (partition by ask) as is_whole,
             bool_or(own = 'busy') over (partition by ask) as is_busy,
             count(*) filter (where own = 'created') over (partition by ask) as size
        from judged
    ), recent as (
      select h.user_id,
             sum(h.quantity) filter (where h.created_at > moment - interval '5 minutes') as granted,
             sum(h.quantity) filter (where h.created_at > moment - interval '5 minutes'
                                       and not (h.status = 'cancelled' and h.ended_at <= h.created_at + interval '30 seconds'))
               as rated,
             min(h.created_at) filter (where h.created_at > moment - interval '5 minutes') as first_at,
             min(h.created_at) filter (where h.created_at > moment - interval '5 minutes'
                                         and not (h.status = 'cancelled' and h.ended_at <= h.created_at + interval '30 seconds'))
               as first_rated_at,
             sum(h.quantity) filter (where h.status = 'active' and h.expires_at > moment) as active,
             sum(h.quantity) filter (where h.status = 'active' and h.expires_at > moment and h.event_id = p_event) as booked,
             count(*) filter (where h.status = 'active' and h.expires_at > moment and h.event_id = p_event
                                and exists (select from event_seats w
                                             where w.organization_id = p_organization and w.is_wheelchair
                                               and is_seat(w.seat_id, w.event_id, h.seat_id, p_event))) as wheelchairs
        from seat_holds h
       where h.organization_id = p_organization and h.user_id = any (p_users)
         and h.created_at > moment - interval '70 minutes'  -- no hold lasts longer
       group by h.user_id
    ), from_ip as (
      select h.client_ip, sum(h.quantity) as n
        from seat_holds h
       where rules.holds_per_ip_max is not null and h.organization_id = p_organization and h.client_ip = any (p_ips)
         and h.status = 'active' and h.expires_at > moment
       group by h.client_ip
    ), counted as materialized (
      -- What those before in this batch were given counts too; rows of one ask are peers and share one sum.
      select g.*, r.first_at, r.first_rated_at,
             count(*) filter (where is_whole and own = 'created') over mine as n,
             coalesce(r.granted, 0) as granted, coalesce(r.rated, 0) as rated, coalesce(r.active, 0) as active,
             coalesce(r.booked, 0) as booked, coalesce(r.wheelchairs, 0) as wheelchairs,
             count(*) filter (where is_whole and own = 'created' and g.is_wheelchair) over mine as wheelchairs_n
        from grouped g
        left join recent r on r.user_id = g.u
      window mine as (partition by g.u order by g.ask)
    ), final as (
      select *,
             case
               when is_busy then 'busy'
               when not is_whole then case when own in ('created', 'existing') then 'group_refused' else own end
               when own = 'existing' or is_staff then own
               when size > least(10, rules.seats_max) then 'max_seats_exceeded'  -- however long they wait
               when rated + n > 10 or granted + n > 40 then 'rate_limited'
               when booked + n > rules.seats_max then 'max_seats_exceeded'
               when is_wheelchair and wheelchairs + wheelchairs_n > rules.wheelchairs_max
                 then 'max_wheelchair_seats_exceeded'
               when active + n > rules.holds_max then 'max_holds_exceeded'
               else own
             end as decided
        from counted
    ), from_there as materialized (  -- what would be given to an address, ask by ask
      select f.ask, f.ip, f.is_staff, count(*) as wanted, row_number() over (partition by f.ip order by f.ask) as turn
        from final f
       where rules.holds_per_ip_max is not null and f.ip is not null and f.decided = 'created'
         and not exists (select from final o where o.ask = f.ask and o.decided not in ('created', 'existing'))
       group by f.ask, f.ip, f.is_staff
    ), served (ip, turn, ask, n, is_over) as (
      -- One after the other, since what is refused does not count against whoever comes after it.
      select t.ip, 0::bigint, null::integer, coalesce(f.n, 0), false
        from (select distinct ip from from_there) as t
        left join from_ip f on f.client_ip = t.ip
       union all
      select t.ip, t.turn, t.ask, s.n + case when over.is_over then 0 else t.wanted end, over.is_over
        from served s
        join from_there t on t.ip = s.ip and t.turn = s.turn + 1
       cross join lateral (select not t.is_staff and s.n + t.wanted > rules.holds_per_ip_max) as over (is_over)
    ), whole as materialized (
      -- A limit that bars one seat bars its ask.
      select f.*,
             case when decided <> 'created' then decided
                  when exists (select from served s where s.ask = f.ask and s.is_over) then 'max_holds_exceeded'
                  when bool_or(decided not in ('created', 'existing')) over (partition by f.ask) then 'group_refused'
                  else decided end as outcome
        from final f
    ), win as (
      select * from whole where outcome = 'created'
    ), seat as (
      update event_seats s
         set status = 'held', hold_id = w.hold, held_by = w.u, held_until = until, locked_at = moment,
             version = s.version + 1
        from win w
       cross join lateral (select e.ctid as tid from event_seats e
                            where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, w.seat, p_event)
                           offset 0) as n
       where s.ctid = n.tid
    ), hold as (
      insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, source, client_ip, cart_token,
                              created_at, initial_expires_at, expires_at, updated_at)
      select hold, p_organization, p_event, zone_id, seat, u, source, ip, cart, moment, until, until, moment from win
    ), fact as (
      insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
      select p_organization, (select journal_number()), 'seat_reserved', p_event, seat, version + 1, u, request, origin,
             jsonb_build_object('hold_id', hold, 'held_until', until, 'source', source)
        from win
    )
    select w.place::integer, w.outcome,
           case w.outcome when 'created' then w.hold when 'existing' then w.old_hold end,
           case w.outcome when 'created' then until
                          when 'rate_limited' then case when w.rated + w.n > 10 then w.first_rated_at else w.first_at end
                                                   + interval '5 minutes'
                          else w.old_until end,
           w.version + (w.outcome = 'created')::integer, w.seat_state, w.held_by
      from whole w;
  end if;

  if by_number > 0 then
    return query
    select * from reserve_zones(p_organization, p_event, p_asks, p_seats, p_zones, p_quantities, p_users, p_holds,
                                p_requests, p_origins, p_ips, p_carts, p_sources, p_roles, p_are_staff, moment, rules.ttl,
                                rules.seats_max, rules.holds_max, rules.holds_per_ip_max);
  end if;
end
$$;

-- The part of a batch that asks for places by number; zones are locked. In the order of arrival: who asks for more than
-- there is does not bar those behind who ask for less.
create or replace function reserve_zones(
  p_organization uuid, p_event uuid, p_asks integer[], p_seats uuid[], p_zones uuid[], p_quantities integer[],
  p_users uuid[], p_holds uuid[], p_requests uuid[], p_origins uuid[], p_ips inet[], p_carts text[], p_sources text[],
  p_roles text[], p_are_staff boolean[], p_now timestamptz, p_ttl interval, p_seats_max integer, p_holds_max integer,
  p_holds_per_ip_max integer
)
returns table (
  item integer, verdict text, hold_id uuid, held_until timestamptz, version integer, state text, holder uuid
)
language plpgsql
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  zone event_zones;
  used record;
  from_ip bigint;
  lapsed uuid[];
  free integer;
  wanted integer;
  until timestamptz := p_now + p_ttl;
begin
  for item in select i from generate_subscripts(p_asks, 1) as i
               where p_seats[i] is null order by p_asks[i], i
  loop
    hold_id := null; held_until := null; version := null; state := null; holder := null;
    wanted := p_quantities[item];
    select * into zone
      from event_zones z
     where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = p_zones[item]
       and z.zone_type not in ('reserved_seating', 'vip_reserved');
    if not found then
      verdict := 'zone_not_found';
      return next;
      continue;
    end if;
    free := zone.capacity - zone.blocked - zone.held - zone.sold;
    if free < wanted then
      -- Lapsed holds still stand in the counter: take those of this zone back, as many as nobody else is at.
      select array_agg(l.id) into lapsed
        from (select h.id from seat_holds h
               where h.organization_id = p_organization and h.event_id = p_event and h.zone_id = zone.zone_id
                 and h.seat_id is null and h.status = 'active' and h.expires_at <= (select lapse_clock(p_now))
                 for no key update skip locked) as l;
      if lapsed is not null then
        perform hold_lapse(p_organization, p_event, lapsed, null, p_now);
        select z.capacity - z.blocked - z.held - z.sold into free
          from event_zones z
         where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = p_zones[item];
      end if;
    end if;
    select coalesce(sum(h.quantity) filter (where h.created_at > p_now - interval '5 minutes'), 0) as granted,
           coalesce(sum(h.quantity) filter (
             where h.created_at > p_now - interval '5 minutes'
               and not (h.status = 'cancelled' and h.ended_at <= h.created_at + interval '30 seconds')), 0) as rated,
           min(h.created_at) filter (where h.created_at > p_now - interval '5 minutes') as first_at,
           min(h.created_at) filter (
             where h.created_at > p_now - interval '5 minutes'
               and not (h.status = 'cancelled' and h.ended_at <= h.created_at + interval '30 seconds')) as first_rated_at,
           coalesce(sum(h.quantity) filter (where h.status = 'active' and h.expires_at > p_now), 0) as active,
           coalesce(sum(h.quantity) filter (
             where h.status = 'active' and h.expires_at > p_now and h.event_id = p_event), 0) as booked
      into used
      from seat_holds h
     where h.organization_id = p_organization and h.user_id = p_users[item]
       and h.created_at > p_now - interval '70 minutes';
    from_ip := 0;
    if p_holds_per_ip_max is not null then
      select coalesce(sum(h.quantity), 0) into from_ip
        from seat_holds h
       where h.organization_id = p_organization and h.client_ip = p_ips[item] and h.status = 'active'
         and h.expires_at > p_now;
    end if;
    verdict := case
      when not zone.is_enabled then 'zone_not_found'
      when not may_book(p_organization, p_users[item], p_roles[item], p_now, zone.access_mode, zone.membership_tier,
                        zone.allowed_roles) then 'zone_access_denied'
      when free < wanted then 'block_at_capacity'
      when p_are_staff[item] then 'created'
      when wanted > least(10, p_seats_max) then 'max_seats_exceeded'  -- however long they wait
      when used.rated + wanted > 10 or used.granted + wanted > 40 then 'rate_limited'
      when used.booked + wanted > p_seats_max then 'max_seats_exceeded'
      when used.active + wanted > p_holds_max
           or (p_ips[item] is not null and from_ip + wanted > p_holds_per_ip_max) then 'max_holds_exceeded'
      else 'created'
    end;
    if verdict = 'rate_limited' then
      held_until := case when used.rated + wanted > 10 then used.first_rated_at else used.first_at end
                    + interval '5 minutes';
    elsif verdict = 'created' then
      insert into seat_holds (id, organization_id, event_id, zone_id, user_id, quantity, source, client_ip, cart_token,
                              created_at, initial_expires_at, expires_at, updated_at)
      values (p_holds[item], p_organization, p_event, zone.zone_id, p_users[item], wanted, p_sources[item], p_ips[item],
              p_carts[item], p_now, until, until, p_now);
      version := zone_move(p_organization, p_event, zone.zone_id, wanted, 0, 'seat_reserved', array[p_holds[item]],
                           array[wanted], until, array[p_users[item]], array[p_requests[item]], array[p_origins[item]],
                           jsonb_build_object('source', p_sources[item]));
      hold_id := p_holds[item];
      held_until := until;
    else
      state := free::text;
    end if;
    return next;
  end loop;
end
$$;

-- Hold seats and places for requests of which some have an idempotency key: one key, one effect, one result. A request
-- whose key is known gets the remembered result of each item: verdict `repeated`, with the first verdict in `first_verdict`. The
-- others go through reserve_items, and what they get is remembered under their keys, refusals included, in the transaction
-- of the effect. Only `busy` is not remembered: nothing was decided, and the request goes into the next batch.
-- Keys are locked before anything else, so that a second request with a key waits for the first.
drop function if exists reserve_batch(
  uuid, uuid, integer[], uuid[], uuid[], integer[], uuid[], uuid[], uuid[], uuid[], inet[], text[], text[], text[],
  boolean[], text[], bytea[], uuid[], uuid[], inet[], text[]
);
create or replace function reserve_batch(
  p_organization uuid, p_event uuid, p_asks integer[], p_seats uuid[], p_zones uuid[], p_quantities integer[],
  p_users uuid[], p_holds uuid[], p_requests uuid[], p_origins uuid[], p_ips inet[], p_carts text[], p_sources text[],
  p_roles text[], p_are_staff boolean[], p_keys text[], p_fingerprints bytea[],
  p_new_origins uuid[], p_sessions uuid[], p_origin_ips inet[], p_user_agents text[], p_clock_latest text default null
)
returns table (
  item integer, verdict text, hold_id uuid, held_until timestamptz, version integer, state text, holder uuid,
  first_verdict text
)
language plpgsql
security definer
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  fresh integer[];  -- the items that have no key, or one that is not known
  asks integer[];
  seats uuid[];
  zones uuid[];
  quantities integer[];
  users uuid[];
  holds uuid[];
  requests uuid[];
  origins uuid[];
  ips inet[];
  carts text[];
  sources text[];
  roles text[];
  are_staff boolean[];
begin
  perform set_config('app.organization_id', p_organization::text, true);
  perform pg_advisory_xact_lock(k)
     from (select distinct hashtextextended(p_organization::text || u::text || key, 651) as k  -- as accounts has it
             from unnest(p_users, p_keys) as told (u, key) where key is not null
            order by 1) as ordered;
  return query
  select told.place::integer, case when k.fingerprint = told.fingerprint then 'repeated' else 'idempotency_key_reused' end,
         (found.item ->> 'hold_id')::uuid, (found.item ->> 'held_until')::timestamptz, null::integer,
         found.item ->> 'state', null::uuid, found.item ->> 'verdict'
    from (select *, (row_number() over (partition by t.ask order by t.place) - 1)::integer as n
            from unnest(p_asks, p_users, p_keys, p_fingerprints) with ordinality as t (ask, u, key, fingerprint, place)
           where t.key is not null) as told
    join idempotency_keys k on k.organization_id = p_organization and k.owner_id = told.u and k.key = told.key
    left join lateral (
      -- Keys of the release before remember holds only, and only of requests that were granted.
      select coalesce(k.result -> 'items' -> told.n,
                      jsonb_build_object('verdict', 'created', 'hold_id', k.result -> 'hold_ids' -> told.n)) as item
       where k.fingerprint = told.fingerprint) as found on true;
  select array_agg(t.place::integer order by t.place) into fresh
    from unnest(p_asks, p_users, p_keys) with ordinality as t (ask, u, key, place)
   where not exists (select from idempotency_keys k
                      where k.organization_id = p_organization and k.owner_id = t.u and k.key = t.key);
  if fresh is null then
    return;
  end if;
  select array_agg(p_asks[i] order by n), array_agg(p_seats[i] order by n), array_agg(p_zones[i] order by n),
         array_agg(p_users[i] order by n), array_agg(p_holds[i] order by n), array_agg(p_requests[i] order by n),
         array_agg(p_origins[i] order by n), array_agg(p_carts[i] order by n),
         -- One value for all stays one value.
         case when cardinality(p_quantities) = 1 then p_quantities else array_agg(p_quantities[i] order by n) end,
         case when cardinality(p_ips) = 1 then p_ips else array_agg(p_ips[i] order by n) end,
         case when cardinality(p_sources) = 1 then p_sources else array_agg(p_sources[i] order by n) end,
         case when cardinality(p_roles) = 1 then p_roles else array_agg(p_roles[i] order by n) end,
         case when cardinality(p_are_staff) = 1 then p_are_staff else array_agg(p_are_staff[i] order by n) end
    into asks, seats, zones, users, holds, requests, origins, carts, quantities, ips, sources, roles, are_staff
    from unnest(fresh) with ordinality as f (i, n);
  return query
  with decided as materialized (
    select fresh[r.item] as place, r.verdict, r.hold_id, r.held_until, r.version, r.state, r.holder
      from reserve_items(p_organization, p_event, asks, seats, zones, quantities, users, holds, requests, origins, ips,
                         carts, sources, roles, are_staff, p_new_origins, p_sessions, p_origin_ips, p_user_agents,
                         p_clock_latest) as r
  ), remembered as (
    insert into idempotency_keys (organization_id, owner_id, key, fingerprint, result)
    select p_organization, t.u, t.key, t.fingerprint,
           jsonb_build_object('items', jsonb_agg(jsonb_build_object('verdict', d.verdict, 'hold_id', d.hold_id,
                                                                    'held_until', d.held_until, 'state', d.state)
                                                 order by d.place))
      from decided d
      join unnest(p_asks, p_users, p_keys, p_fingerprints) with ordinality as t (ask, u, key, fingerprint, place)
        on t.place = d.place and t.key is not null
     group by t.ask, t.u, t.key, t.fingerprint
    having bool_and(d.verdict <> 'busy')
  )
  select d.place, d.verdict, d.hold_id, d.held_until, d.version, d.state, d.holder, null::text from decided d;
end
$$;

-- Lock what holds point at, in the one order, and read the clock after that.
create or replace function lock_holds(p_organization uuid, p_event uuid, p_holds uuid[]) returns timestamptz
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = on
set search_path = public, pg_temp
as $$
declare
  seats integer[];
  by_number uuid[];
  zones uuid[];
begin
  -- What a hold is of never changes, and the ordinal of a seat neither: both can be looked up before anything is locked.
  select array_agg(s.ordinal), array_agg(h.id) filter (where h.seat_id is null),
         array_agg(h.zone_id) filter (where h.seat_id is null)
    into seats, by_number, zones
    from holds_named(p_holds) as h
    left join lateral (select e.ordinal from event_seats e
                        where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, h.seat_id, p_event)
                       offset 0) as s on true
   where h.organization_id = p_organization and h.event_id = p_event;
  perform from (select n.ordinal from unnest(seats) as n (ordinal) order by n.ordinal) as n
    cross join lateral (select from event_seats e
                         where e.organization_id = p_organization and e.event_id = p_event and e.ordinal = n.ordinal
                           for no key update) as s;
  if by_number is not null then
    perform from seat_holds h where h.id = any (by_number) order by h.id for no key update;
    perform from event_zones z
      where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = any (zones)
      order by z.zone_id
        for no key update;
  end if;
  return clock_timestamp();
end
$$;

-- Give holds five minutes more, once, counted from their first end; never less than they had.
create or replace function hold_extend(
  p_organization uuid, p_event uuid, p_user uuid, p_holds uuid[], p_request uuid, p_origin uuid
)
returns table (hold_id uuid, verdict text, expires_at timestamptz, seat_id uuid, created_at timestamptz)
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz;
  is_suspended boolean;
  by_number uuid[];
  g record;
begin
  perform set_config('app.organization_id', p_organization::text, true);
  moment := lock_holds(p_organization, p_event, p_holds);
  -- Nobody knows when it will be, or it is sold no more: what is held lapses as it would have.
  is_suspended := exists (select from events e
                           where e.organization_id = p_organization and e.id = p_event
                             and (e.status in ('cancelled', 'archived', 'ended')
                                  or (e.status = 'postponed' and e.rescheduled_at is null)));
  select array_agg(h.id order by h.id) into by_number
    from holds_named(p_holds) as h
   where h.organization_id = p_organization and h.event_id = p_event and h.seat_id is null
     and h.user_id = p_user and h.status = 'active' and h.expires_at > moment and h.extended_count = 0
     and not is_suspended;
  return query
  with judged as (
    select h.id, h.seat_id, h.created_at, h.expires_at as old_end, h.extended_count,
           greatest(h.expires_at, h.initial_expires_at + interval '5 minutes') as later,
           case when h.user_id <> p_user then 'not_hold_owner'
                when h.status <> 'active' or h.expires_at <= moment then 'holds_expired'
                when is_suspended then 'event_not_available'
                else 'extended' end as own
      from holds_named(p_holds) as h
     where h.organization_id = p_organization and h.event_id = p_event
  ), win as (
    select * from judged where own = 'extended' and extended_count = 0
  ), hold as (
    update seat_holds h
       set expires_at = w.later, extended_count = 1, updated_at = moment
      from win w
     where h.id = w.id
  ), seat as (
    update event_seats s
       set held_until = w.later, version = s.version + 1
      from win w
     cross join lateral (select e.ctid as tid from event_seats e
                          where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, w.seat_id, p_event)
                         offset 0) as n
     where s.ctid = n.tid and s.hold_id = w.id
    returning s.seat_id, s.version, w.id, w.later
  ), fact as (
    insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
    select p_organization, (select journal_number()), 'seat_hold_extended', p_event, seat_id, version, p_user, p_request,
           p_origin, jsonb_build_object('hold_id', id, 'held_until', later)
      from seat
  )
  select x.id, coalesce(j.own, 'hold_not_found'),
         case when j.own = 'extended' then case when j.extended_count = 0 then j.later else j.old_end end end,
         j.seat_id, j.created_at
    from unnest(p_holds) as x (id)
    left join judged j on j.id = x.id;
  for g in select h.id, h.zone_id, h.quantity, h.expires_at
             from holds_named(by_number) as h
            where h.organization_id = p_organization
            order by h.zone_id, h.id
  loop
    perform zone_move(p_organization, p_event, g.zone_id, 0, 0, 'seat_hold_extended', array[g.id], array[g.quantity],
                      g.expires_at, array[p_user], array[p_request], array[p_origin], '{}');
  end loop;
end
$$;

-- Let holds go. Without a user anybody's, for those who may: why stands in the journal.
create or replace function hold_release(
  p_organization uuid, p_event uuid, p_user uuid, p_holds uuid[], p_actor uuid, p_request uuid, p_origin uuid, p_reason text
)
returns table (hold_id uuid, verdict text, seat_id uuid)
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz;
  live uuid[];
  lapsed uuid[];
begin
  perform set_config('app.organization_id', p_organization::text, true);
  moment := lock_holds(p_organization, p_event, p_holds);
  select array_agg(h.id) filter (where h.expires_at > moment), array_agg(h.id) filter (where h.expires_at <= moment)
    into live, lapsed
    from holds_named(p_holds) as h
   where h.organization_id = p_organization and h.event_id = p_event and h.status = 'active'
     and (p_user is null or h.user_id = p_user);
  if live is not null then
    perform hold_end(p_organization, p_event, live, 'cancelled', 'seat_hold_released', p_actor, p_request, p_origin, moment,
                     jsonb_build_object('reason', p_reason));
  end if;
  if lapsed is not null then
    perform hold_lapse(p_organization, p_event, lapsed, p_request, moment);
  end if;
  return query
  select x.id,
         case when x.id = any (coalesce(live, '{}')) then 'released'
              when h.id is null then 'hold_not_found'
              when p_user is not null and h.user_id <> p_user then 'not_hold_owner'
              else 'ended' end,
         h.seat_id
    from unnest(p_holds) as x (id)
    left join holds_named(p_holds) as h on h.organization_id = p_organization and h.event_id = p_event and h.id = x.id;
end
$$;

-- Give what a guest holds, at whatever event, to the account that they turn out to have: with the time that it has, the
-- oldest first, as much as the account may hold. What it may not is let go. A row for each hold: kept or released.
-- In the transaction that signs them in, which says whose records there are; so nothing is handed over half. Seats and zones
-- of several events are locked here, each kind in the one order before the next: all other calls are about one event.
create or replace function holds_hand_over(
  p_organization uuid, p_guest uuid, p_user uuid, p_role text, p_is_staff boolean, p_limit integer, p_request uuid,
  p_origin uuid
)
returns table (event_id uuid, hold_id uuid, seat_id uuid, quantity integer, verdict text)
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  picked uuid[];
  seats uuid[];
  events_of uuid[];
  one uuid;
  moment timestamptz;
  hold seat_holds;
  zone event_zones;
  rules record;
  used record;
  is_wheelchair boolean;
begin
  -- Whoever asks for it: of somebody who can sign in nothing is ever handed over.
  if p_user = p_guest or not exists (select from users u where u.id = p_guest and u.is_guest) then
    return;
  end if;
  select coalesce(array_agg(l.id), '{}'), array_agg(distinct l.event_id order by l.event_id) into picked, events_of
    from (select h.id, h.event_id
            from seat_holds h
           where h.organization_id = p_organization and h.user_id = p_guest and h.ended_at is null
             and h.created_at > clock_timestamp() - interval '70 minutes' and h.expires_at > clock_timestamp()
           order by h.created_at, h.id
           limit p_limit) as l;
  foreach one in array coalesce(events_of, '{}') loop
    seats := array(select h.seat_id from holds_named(picked) as h
                    where h.organization_id = p_organization and h.event_id = one and h.seat_id is not null);
    perform from (select n.ordinal from seats_named(p_organization, one, seats) as n order by n.ordinal) as n
      cross join lateral (select from event_seats e
                           where e.organization_id = p_organization and e.event_id = one and e.ordinal = n.ordinal
                             for no key update) as s;
  end loop;
  -- Both: the account's limits are exact, and what the guest asked for meanwhile is either seen here or comes too late.
  perform pg_advisory_xact_lock(k)
     from (select uuid_hash_extended(u, 0) # uuid_hash_extended(p_organization, 1) as k
             from unnest(array[p_guest, p_user]) as who (u)
            order by 1) as ordered;
  perform from seat_holds h where h.id = any (picked) and h.seat_id is null order by h.id for no key update;
  foreach one in array coalesce(events_of, '{}') loop
    perform from event_zones z
      where z.organization_id = p_organization and z.event_id = one
        and z.zone_id = any (array(select h.zone_id from holds_named(picked) as h
                                    where h.organization_id = p_organization and h.event_id = one and h.seat_id is null))
      order by z.zone_id
        for no key update;
  end loop;
  moment := clock_timestamp();
  if cardinality(picked) < p_limit
     and exists (select from seat_holds h
                  where h.organization_id = p_organization and h.user_id = p_guest and h.ended_at is null
                    and h.created_at > moment - interval '70 minutes' and h.expires_at > moment
                    and h.id <> all (picked)) then
    -- Its place would be locked out of order. The caller begins again, and finds it.
    raise exception 'the guest was given something meanwhile' using errcode = 'serialization_failure';
  end if;

  for hold in select h.* from holds_named(picked) as h
               where h.organization_id = p_organization and h.user_id = p_guest and h.status = 'active' and h.expires_at > moment
               order by h.created_at, h.id
  loop
    select * into rules from hold_rules(p_organization, hold.event_id);
    select * into zone
      from event_zones z
     where z.organization_id = p_organization and z.event_id = hold.event_id and z.zone_id = hold.zone_id;
    is_wheelchair := exists (select from event_seats w
                              where w.organization_id = p_organization and w.is_wheelchair
                                and is_seat(w.seat_id, w.event_id, hold.seat_id, hold.event_id));
    -- What was handed over a moment ago counts, as it would had the account asked for it itself.
    select coalesce(sum(h.quantity) filter (where h.created_at > moment - interval '5 minutes'), 0) as granted,
           coalesce(sum(h.quantity) filter (
             where h.created_at > moment - interval '5 minutes'
               and not (h.status = 'cancelled' and h.ended_at <= h.created_at + interval '30 seconds')), 0) as rated,
           coalesce(sum(h.quantity) filter (where h.status = 'active' and h.expires_at > moment), 0) as active,
           coalesce(sum(h.quantity) filter (
             where h.status = 'active' and h.expires_at > moment and h.event_id = hold.event_id), 0) as booked,
           count(*) filter (
             where h.status = 'active' and h.expires_at > moment and h.event_id = hold.event_id
               and exists (select from event_seats w
                            where w.organization_id = p_organization and w.is_wheelchair
                              and is_seat(w.seat_id, w.event_id, h.seat_id, hold.event_id))) as wheelchairs
      into used
      from seat_holds h
     where h.organization_id = p_organization and h.user_id = p_user and h.created_at > moment - interval '70 minutes';
    -- The limits of reserve_batch, but for that of an address: where a hold was asked for does not change.
    verdict := case
      when not may_book(p_organization, p_user, p_role, moment, zone.access_mode, zone.membership_tier, zone.allowed_roles)
        then 'released'
      when p_is_staff then 'kept'
      when hold.created_at > moment - interval '5 minutes'
           and (used.rated + hold.quantity > 10 or used.granted + hold.quantity > 40) then 'released'
      when used.booked + hold.quantity > rules.seats_max then 'released'
      when is_wheelchair and used.wheelchairs + 1 > rules.wheelchairs_max then 'released'
      when used.active + hold.quantity > rules.holds_max then 'released'
      else 'kept'
    end;
    if verdict = 'released' then
      perform hold_end(p_organization, hold.event_id, array[hold.id], 'cancelled', 'seat_hold_released', p_user, p_request,
                       p_origin, moment, '{"reason": "left_at_sign_in"}');
    else
      update seat_holds h
         set user_id = p_user, updated_at = moment
       where h.id = hold.id;
      if hold.seat_id is null then
        perform zone_move(p_organization, hold.event_id, hold.zone_id, 0, 0, 'seat_hold_handed_over', array[hold.id],
                          array[hold.quantity], hold.expires_at, array[p_user], array[p_request], array[p_origin],
                          jsonb_build_object('guest_id', p_guest));
      else
        with seat as (
          update event_seats s
             set held_by = p_user, version = s.version + 1
           where s.organization_id = p_organization and s.hold_id = hold.id
             and is_seat(s.seat_id, s.event_id, hold.seat_id, hold.event_id)
          returning s.seat_id, s.version
        )
        insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
        select p_organization, (select journal_number()), 'seat_hold_handed_over', hold.event_id, seat_id, version, p_user,
               p_request, p_origin,
               jsonb_build_object('hold_id', hold.id, 'held_until', hold.expires_at, 'guest_id', p_guest)
          from seat;
      end if;
    end if;
    event_id := hold.event_id; hold_id := hold.id; seat_id := hold.seat_id; quantity := hold.quantity;
    return next;
  end loop;
end
$$;

-- Make tickets of a basket, all of it or nothing. With the money taken a lapsed hold still counts as long as nobody else
-- has its place: a new hold is made and converted in the same breath, so that the record tells what happened. Who has taken
-- the seat again themselves meanwhile has it once: that hold ends.
drop function if exists hold_convert(uuid, uuid, uuid, uuid[], uuid[], uuid[], uuid, boolean, uuid, uuid);
create or replace function hold_convert(
  p_organization uuid, p_event uuid, p_user uuid, p_holds uuid[], p_tickets uuid[], p_late_holds uuid[], p_order uuid,
  p_is_paid boolean, p_request uuid, p_origin uuid, p_clock_latest text default null
) returns text
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz;
  lapsed_by timestamptz;  -- up to when holds of other buyers have expired
  status_now text;
  known record;
  seats uuid[];
  rival uuid[];
  final_holds uuid[];
  z record;
begin
  perform set_config('app.organization_id', p_organization::text, true),
          set_config('app.clock_latest', coalesce(p_clock_latest, ''), true);
  moment := lock_holds(p_organization, p_event, p_holds);
  lapsed_by := lapse_clock(moment);
  -- Shared, so that a cancellation that was told of is never followed by a ticket.
  select case when e.status = 'postponed' and e.rescheduled_at is null then 'suspended' else e.status end into status_now
    from events e where e.organization_id = p_organization and e.id = p_event for share;
  if status_now is null then
    return 'event_not_found';
  end if;
  if status_now in ('cancelled', 'archived', 'draft') then
    return 'event_unavailable';
  end if;
  if status_now = 'suspended' then
    return 'event_not_available';
  end if;
  select count(*) as n, sum(h.quantity) as items,
         bool_and(h.status = 'active' and h.expires_at > moment) as are_live,
         bool_and(h.status in ('expired', 'active')
                  and (h.seat_id is null or s.status = 'available'
                       or (s.status = 'held' and (s.hold_id = h.id or s.held_until <= lapsed_by
                                                  or (s.held_by = p_user and s.hold_id <> all (p_holds)))))) as are_free,
         array_agg(h.id) filter (where h.status = 'active' and h.expires_at <= moment) as lapsed
    into known
    from holds_named(p_holds) as h
    left join lateral (select * from event_seats e
                        where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, h.seat_id, p_event)
                       offset 0) as s on true
   where h.organization_id = p_organization and h.event_id = p_event and h.user_id = p_user;
  if known.n <> cardinality(p_holds) or known.n = 0 then
    return 'hold_not_found';
  end if;
  if not known.are_live then
    -- Asked again: an order has what it was given, also where lapsed holds were made anew for it.
    perform from (select h.zone_id, h.seat_id, sum(h.quantity) as n from holds_named(p_holds) as h
                   where h.organization_id = p_organization
                   group by h.zone_id, h.seat_id) as w
      where w.n > (select count(*) from tickets t
                    where t.organization_id = p_organization and t.user_id = p_user and t.event_id = p_event
                      and t.order_id = p_order and t.zone_id = w.zone_id and t.seat_id is not distinct from w.seat_id);
    if not found then
      return 'already_converted';
    end if;
    if (p_is_paid and known.are_free) is not true then
      return 'holds_expired';
    end if;
  end if;
  assert known.items = cardinality(p_tickets), 'a ticket for each place';

  final_holds := p_holds;
  if not known.are_live then
    assert cardinality(p_late_holds) = cardinality(p_holds), 'a new hold for each that may have lapsed';
    seats := array(select h.seat_id from holds_named(p_holds) as h where h.organization_id = p_organization);
    -- Whoever else took a place meanwhile and let it lapse; and what of ours has lapsed and was not noticed yet.
    select array_agg(s.hold_id) into rival
      from seats_named(p_organization, p_event, seats) as s
     where s.status = 'held' and s.held_until <= lapsed_by;
    select rival || array_agg(l.id) into rival
      from (select o.id from seat_holds o
             where o.organization_id = p_organization and o.event_id = p_event and o.seat_id is null
               and o.status = 'active' and o.expires_at <= lapsed_by
               and o.zone_id = any (array(select h.zone_id from holds_named(p_holds) as h
                                           where h.organization_id = p_organization and h.seat_id is null))
               for no key update skip locked) as l;
    perform hold_lapse(p_organization, p_event, coalesce(rival, '{}') || coalesce(known.lapsed, '{}'), p_request, moment);
    perform from holds_named(p_holds) as h
       join event_zones z on z.organization_id = p_organization and z.event_id = p_event and z.zone_id = h.zone_id
      where h.organization_id = p_organization and h.seat_id is null and h.status = 'expired'
      group by z.zone_id, z.capacity, z.blocked, z.held, z.sold
     having sum(h.quantity) > z.capacity - z.blocked - z.held - z.sold;
    if found then
      -- Nothing but lapsed holds was ended, which is right whatever comes of this.
      return 'holds_expired';
    end if;
    perform hold_end(p_organization, p_event,
                     array(select s.hold_id
                             from seats_named(p_organization, p_event, seats) as s
                            where s.status = 'held' and s.hold_id <> all (p_holds)),
                     'cancelled', 'seat_hold_released', p_user, p_request, p_origin, moment,
                     '{"reason": "late_payment"}');
    with late as (
      insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, quantity, source, client_ip,
                              cart_token, created_at, initial_expires_at, expires_at, updated_at)
      select n.new_id, p_organization, p_event, h.zone_id, h.seat_id, p_user, h.quantity, 'late_payment', h.client_ip,
             h.cart_token, moment, moment + interval '1 minute', moment + interval '1 minute', moment
        from unnest(p_holds, p_late_holds) as n (old_id, new_id)
        join holds_named(p_holds) as h on h.organization_id = p_organization and h.id = n.old_id
       where h.status = 'expired'
      returning id, seat_id
    ), seat as (
      update event_seats s
         set status = 'held', hold_id = l.id, held_by = p_user, held_until = moment + interval '1 minute',
             locked_at = moment, version = s.version + 1
        from late l
       cross join lateral (select e.ctid as tid from event_seats e
                            where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, l.seat_id, p_event)
                           offset 0) as n
       where s.ctid = n.tid
      returning s.seat_id, s.version, l.id
    )
    insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
    select p_organization, (select journal_number()), 'seat_reserved', p_event, seat_id, version, p_user, p_request,
           p_origin, jsonb_build_object('hold_id', id, 'held_until', moment + interval '1 minute', 'source', 'late_payment')
      from seat;
    for z in select h.id, h.zone_id, h.quantity from holds_named(p_late_holds) as h
              where h.organization_id = p_organization and h.seat_id is null
              order by h.zone_id, h.id
    loop
      perform zone_move(p_organization, p_event, z.zone_id, z.quantity, 0, 'seat_reserved', array[z.id], array[z.quantity],
                        moment + interval '1 minute', array[p_user], array[p_request], array[p_origin],
                        '{"source": "late_payment"}');
    end loop;
    select array_agg(case when h.status = 'active' then h.id else n.new_id end) into final_holds
      from unnest(p_holds, p_late_holds) as n (old_id, new_id)
      join holds_named(p_holds) as h on h.organization_id = p_organization and h.id = n.old_id;
  end if;

  with hold as (
    update seat_holds h
       set status = 'converted', ended_at = moment, updated_at = moment
     where h.id = any (final_holds)
    returning h.id, h.zone_id, h.seat_id, h.quantity
  ), placed as (
    select h.*, (sum(h.quantity) over (order by h.id) - h.quantity)::integer as before from hold h
  ), ticket as (
    insert into tickets (id, organization_id, event_id, zone_id, seat_id, hold_id, item, user_id, order_id, created_at)
    select p_tickets[p.before + i], p_organization, p_event, p.zone_id, p.seat_id, p.id, i, p_user, p_order, moment
      from placed p, generate_series(1, p.quantity) as i
  ), seat as (
    update event_seats s
       set status = 'sold', ticket_id = p_tickets[p.before + 1], hold_id = null, held_by = null, held_until = null,
           locked_at = null, version = s.version + 1
      from placed p
     cross join lateral (select e.ctid as tid from event_seats e
                          where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, p.seat_id, p_event)
                         offset 0) as n
     where s.ctid = n.tid
    returning s.seat_id, s.version, s.ticket_id, p.id as hold_id
  )
  insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, data)
  select p_organization, (select journal_number()), 'seat_sold', p_event, seat_id, version, p_user, p_request, p_origin,
         jsonb_build_object('hold_id', hold_id, 'ticket_id', ticket_id, 'order_id', p_order)
    from seat;
  for z in select h.id, h.zone_id, h.quantity from holds_named(final_holds) as h
            where h.organization_id = p_organization and h.seat_id is null
            order by h.zone_id, h.id
  loop
    perform zone_move(p_organization, p_event, z.zone_id, -z.quantity, z.quantity, 'seat_sold', array[z.id],
                      array[z.quantity], null, array[p_user], array[p_request], array[p_origin],
                      jsonb_build_object('order_id', p_order));
  end loop;
  return 'sold';
end
$$;

-- Tidy up to so many lapsed holds of one event away. Seats through their rows, and never waiting for one: whoever is there
-- takes the lapsed hold over anyway.
drop function if exists hold_expire(uuid, uuid, integer);
create or replace function hold_expire(
  p_organization uuid, p_event uuid, p_limit integer, p_clock_latest text default null
) returns integer
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_sort = off
set enable_bitmapscan = off
set search_path = public, pg_temp
as $$
declare
  due uuid[];
  of_seats uuid[];
  by_number uuid[];
begin
  perform set_config('app.organization_id', p_organization::text, true),
          set_config('app.clock_latest', coalesce(p_clock_latest, ''), true);
  -- The oldest first, by their own index, and only then their seats: to sort all that have lapsed by seat for each call
  -- would make a thousand of them cost what a million should.
  select array_agg(l.seat_id) into due
    from (select h.seat_id
            from seat_holds h
           where h.organization_id = p_organization and h.event_id = p_event and h.seat_id is not null
             and h.status = 'active' and h.expires_at <= (select lapse_clock(clock_timestamp()))
           order by h.expires_at
           limit p_limit) as l;
  -- A seat has the end of its hold, and whoever changes either locks the seat first: what was extended or ended since it
  -- was picked is passed over here.
  select array_agg(l.hold_id) into of_seats
    from unnest(due) as n (id)
   cross join lateral (select s.hold_id
                         from event_seats s
                        where s.organization_id = p_organization and is_seat(s.seat_id, s.event_id, n.id, p_event)
                          and s.status = 'held' and s.held_until <= (select lapse_clock(clock_timestamp()))
                          for no key update skip locked) as l;
  if exists (select from event_zones z
              where z.organization_id = p_organization and z.event_id = p_event
                and z.zone_type not in ('reserved_seating', 'vip_reserved')) then
    select array_agg(l.id) into by_number
      from (select h.id
              from seat_holds h
             where h.organization_id = p_organization and h.event_id = p_event and h.seat_id is null and h.status = 'active'
               and h.expires_at <= (select lapse_clock(clock_timestamp()))
             order by h.expires_at
             limit p_limit
               for no key update skip locked) as l;
    perform from event_zones z
      where z.organization_id = p_organization and z.event_id = p_event
        and z.zone_id = any (array(select h.zone_id from holds_named(by_number) as h
                                    where h.organization_id = p_organization))
      order by z.zone_id
        for no key update;
    -- These were picked as they were locked; but one that was locked a moment ago may have been extended before that.
    select array_agg(h.id) into by_number
      from holds_named(by_number) as h
     where h.organization_id = p_organization and h.status = 'active' and h.expires_at <= (select lapse_clock(clock_timestamp()));
  end if;
  if of_seats is null and by_number is null then
    return 0;
  end if;
  return hold_lapse(p_organization, p_event, of_seats || by_number, null, clock_timestamp());
end
$$;

-- Take seats out of sale by hand, or put them back. A hold in the way ends; what is sold stays sold. What the event itself
-- keeps out of sale stays out, whoever lets go of it. One that is over, or will not take place, keeps its places as they were.
create or replace function seats_block(
  p_organization uuid, p_event uuid, p_seats uuid[], p_is_block boolean, p_actor uuid, p_request uuid, p_origin uuid,
  p_reason text
)
returns table (seat_id uuid, verdict text, version integer, was text, became text)
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz;
  held uuid[];
  freed uuid[];
  own jsonb;
begin
  perform set_config('app.organization_id', p_organization::text, true);
  perform from (select distinct n.ordinal from seats_named(p_organization, p_event, p_seats) as n order by 1) as n
    cross join lateral (select from event_seats e
                         where e.organization_id = p_organization and e.event_id = p_event and e.ordinal = n.ordinal
                           for no key update) as s;
  moment := clock_timestamp();
  if exists (select from events e
              where e.organization_id = p_organization and e.id = p_event
                and e.status in ('ended', 'cancelled', 'archived')) then
    return query select x.id, 'seating_locked', null::integer, null::text, null::text from unnest(p_seats) as x (id);
    return;
  end if;
  if p_is_block then
    select array_agg(s.hold_id), array_agg(s.seat_id) into held, freed
      from seats_named(p_organization, p_event, p_seats) as s
     where s.status = 'held';
    if held is not null then
      perform hold_lapse(p_organization, p_event,
                         array(select h.id from holds_named(held) as h
                                where h.organization_id = p_organization and h.expires_at <= moment),
                         p_request, moment);
      perform hold_end(p_organization, p_event, held, 'cancelled', 'seat_hold_released', p_actor, p_request, p_origin,
                       moment, jsonb_build_object('reason', 'seat_blocked'));
    end if;
  else
    select l.overrides -> 'blocked_seat_ids' into own
      from event_layouts l
     where l.organization_id = p_organization and l.event_id = p_event;
  end if;
  return query
  with done as (
    update event_seats s
       set status = case when p_is_block or k.kept is not null then 'blocked' else 'available' end::seat_status,
           blocked_by = case when p_is_block then 'staff' else k.kept end,
           version = s.version + 1
      from (select e.tid,
                   case when coalesce(own, '[]') ? e.seat_id::text then 'layout'
                        when not z.is_enabled or z.zone_type not in ('reserved_seating', 'vip_reserved') then 'zone' end
                     as kept
              from unnest(p_seats) as n (id)
             cross join lateral (select e.ctid as tid, e.seat_id, e.zone_id from event_seats e
                                  where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, n.id, p_event)
                                 offset 0) as e
             cross join lateral (select z.is_enabled, z.zone_type from event_zones z
                                  where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = e.zone_id
                                 offset 0) as z) as k
     where s.ctid = k.tid
       and case when p_is_block then s.status = 'available' else s.status = 'blocked' and s.blocked_by = 'staff' end
    returning s.seat_id, s.version, s.status
  ), fact as (
    insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, reason, data)
    select p_organization, (select journal_number()), case when p_is_block then 'seat_blocked' else 'seat_unblocked' end,
           p_event, d.seat_id, d.version, p_actor, p_request, p_origin, p_reason,
           jsonb_build_object('blocked_by', 'staff', 'status', d.status)
      from done d
  )
  select x.id,
         case when d.seat_id is not null then 'done'
              when s.seat_id is null then 'seat_not_found'
              when p_is_block and s.status = 'blocked' then 'blocked'
              when not p_is_block and s.status <> 'blocked' then 'not_blocked'
              when not p_is_block then 'blocked_by_layout'
              else 'seat_not_available' end,
         coalesce(d.version, s.version),
         case when x.id = any (freed) then 'held' when p_is_block then 'available' else 'blocked' end,
         d.status::text
    from unnest(p_seats) with ordinality as x (id, place)
    left join lateral (select * from event_seats e
                        where e.organization_id = p_organization and is_seat(e.seat_id, e.event_id, x.id, p_event)
                       offset 0) as s on true
    left join done d on d.seat_id = x.id
   order by x.place;
end
$$;

-- Take a ticket back: its place can be sold again.
create or replace function ticket_void(
  p_organization uuid, p_event uuid, p_ticket uuid, p_actor uuid, p_request uuid, p_origin uuid, p_reason text
) returns text
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set search_path = public, pg_temp
as $$
declare
  found_ticket tickets;
  moment timestamptz;
begin
  perform set_config('app.organization_id', p_organization::text, true);
  select * into found_ticket from tickets t
   where t.organization_id = p_organization and t.event_id = p_event and t.id = p_ticket;
  if found_ticket.id is null then
    return 'ticket_not_found';
  end if;
  perform from event_seats s
    where s.organization_id = p_organization and is_seat(s.seat_id, s.event_id, found_ticket.seat_id, p_event)
      for no key update;
  if found_ticket.seat_id is null then
    perform from event_zones z
      where z.organization_id = p_organization and z.event_id = p_event and z.zone_id = found_ticket.zone_id
        for no key update;
  end if;
  moment := clock_timestamp();
  update tickets t
     set status = 'void', voided_at = moment
   where t.organization_id = p_organization and t.id = p_ticket and t.status = 'valid';
  if not found then
    return 'ticket_void';
  end if;
  if found_ticket.seat_id is null then
    perform zone_move(p_organization, p_event, found_ticket.zone_id, 0, -1, 'ticket_voided', array[found_ticket.hold_id],
                      array[1], null, array[p_actor], array[p_request], array[p_origin],
                      jsonb_build_object('ticket_id', p_ticket, 'reason', p_reason));
  else
    with seat as (
      update event_seats s
         set status = 'available', ticket_id = null, version = s.version + 1
       where s.organization_id = p_organization and s.ticket_id = p_ticket
         and is_seat(s.seat_id, s.event_id, found_ticket.seat_id, p_event)
      returning s.seat_id, s.version
    )
    insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, request_id, origin_id, reason, data)
    select p_organization, (select journal_number()), 'ticket_voided', p_event, seat_id, version, p_actor, p_request,
           p_origin, p_reason, jsonb_build_object('ticket_id', p_ticket, 'hold_id', found_ticket.hold_id)
      from seat;
  end if;
  return 'voided';
end
$$;

-- Let up to so many active holds of an event go, whoever's they are: it was cancelled, or is not sold any more. What
-- somebody is at is left to the next call, or to the reaper. Zones may have to be waited for, so they come when no seat is
-- to be had. Picked as by hold_expire, and for its reason: to sort all that are left by seat for each call made cancelling
-- an event with 20,000 of them take half a minute.
create or replace function holds_release_all(
  p_organization uuid, p_event uuid, p_limit integer, p_actor uuid, p_request uuid, p_reason text
) returns integer
language plpgsql
security definer
set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_sort = off
set enable_bitmapscan = off
set search_path = public, pg_temp
as $$
declare
  due uuid[];
  picked uuid[];
  moment timestamptz;
begin
  perform set_config('app.organization_id', p_organization::text, true);
  select array_agg(l.seat_id) into due
    from (select h.seat_id
            from seat_holds h
           where h.organization_id = p_organization and h.event_id = p_event and h.seat_id is not null
             and h.status = 'active'
           order by h.expires_at
           limit p_limit) as l;
  select array_agg(l.hold_id) into picked
    from unnest(due) as n (id)
   cross join lateral (select s.hold_id
                         from event_seats s
                        where s.organization_id = p_organization and is_seat(s.seat_id, s.event_id, n.id, p_event)
                          and s.status = 'held'
                          for no key update skip locked) as l;
  if picked is null then
    select array_agg(l.id) into picked
      from (select h.id
              from seat_holds h
             where h.organization_id = p_organization and h.event_id = p_event and h.seat_id is null and h.status = 'active'
             order by h.expires_at
             limit p_limit
               for no key update skip locked) as l;
  end if;
  if picked is null then
    return 0;
  end if;
  moment := lock_holds(p_organization, p_event, picked);
  return hold_lapse(p_organization, p_event,
                    array(select h.id from holds_named(picked) as h
                           where h.organization_id = p_organization and h.status = 'active' and h.expires_at <= moment),
                    p_request, moment)
       + hold_end(p_organization, p_event, picked, 'cancelled', 'seat_hold_released', p_actor, p_request, null, moment,
                  jsonb_build_object('reason', p_reason));
end
$$;

-- Whoever is given a function must be able to make one, as long as it takes to give it. Only what is called from outside
-- may be called by the application; the rest is for the registry itself.
do $$
declare
  own regprocedure;
  outer_ones constant text[] := array[
    'inventory_add_seats', 'inventory_add_zones', 'inventory_lock_zones', 'inventory_remove', 'inventory_clear',
    'inventory_change',
    'reserve_items', 'reserve_batch', 'hold_extend', 'hold_release', 'hold_convert', 'hold_expire', 'holds_release_all', 'holds_hand_over',
    'seats_block', 'ticket_void'];
  inner_ones constant text[] := array[
    'hold_rules', 'lapse_clock', 'zone_move', 'hold_end', 'hold_lapse', 'may_book', 'sale_refusal', 'reserve_zones',
    'lock_holds', 'holds_named', 'seats_named', 'is_seat'];
begin
  grant create on schema public to voelgoed_registry;
  for own in select oid::regprocedure from pg_proc
              where pronamespace = 'public'::regnamespace and proname = any (outer_ones || inner_ones)
  loop
    execute format('alter function %s owner to voelgoed_registry', own);
    execute format('revoke all on function %s from public', own);
  end loop;
  revoke create on schema public from voelgoed_registry;
  for own in select oid::regprocedure from pg_proc
              where pronamespace = 'public'::regnamespace and proname = any (outer_ones)
  loop
    execute format('grant execute on function %s to voelgoed_app', own);
  end loop;
end
$$;
