-- What an organization lets its seating be, what an event makes of a layout, what places cost, and the places of an event.

-- One for each organization; without a row the defaults hold, which are those of seating/policy.py.
create table seating_policies (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  allow_reserved_seating boolean not null default true,
  allow_ga_seating boolean not null default true,
  allow_hybrid_ga_reserved boolean not null default true,
  allow_vip_zones boolean not null default false,
  allowed_access_modes text[] not null default '{public,membership_tier,role_based}'
    constraint seating_policies_access_modes_known
    check (cardinality(allowed_access_modes) between 1 and 4
           and allowed_access_modes <@ array['public', 'membership_tier', 'role_based', 'whitelist']),
  enforce_accessibility_rules boolean not null default true,
  companion_release_occupancy_threshold integer not null default 85
    constraint seating_policies_threshold_range check (companion_release_occupancy_threshold between 0 and 100),
  max_wheelchair_seats_per_booking integer not null default 1
    constraint seating_policies_wheelchair_range check (max_wheelchair_seats_per_booking between 1 and 40),
  companion_requires_wheelchair boolean not null default false,
  max_companions_per_wheelchair integer not null default 1
    constraint seating_policies_companions_range check (max_companions_per_wheelchair between 1 and 3),
  accessibility_audit_enabled boolean not null default true,
  max_seats_per_booking integer not null default 10
    constraint seating_policies_seats_range check (max_seats_per_booking between 1 and 40),
  orphan_avoidance_strict boolean not null default true,
  group_adjacency_strict boolean not null default false,
  max_group_split integer not null default 2
    constraint seating_policies_split_range check (max_group_split between 0 and 20),
  prefer_clustering_over_selection boolean not null default false,
  default_hold_ttl_minutes integer not null default 10
    constraint seating_policies_ttl_range check (default_hold_ttl_minutes between 1 and 60),
  max_holds_per_user integer
    constraint seating_policies_user_range check (max_holds_per_user between 1 and 10000),
  max_holds_per_ip integer
    constraint seating_policies_ip_range check (max_holds_per_ip between 1 and 10000),
  locked_fields text[] not null default '{}'
    constraint seating_policies_locks_length check (cardinality(locked_fields) <= 40),
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint seating_policies_one_each unique (organization_id)
);
call keep_organizations_apart('seating_policies');
grant select, insert, update on seating_policies to voelgoed_app;
grant select on seating_policies to voelgoed_registry;

-- What places cost, in minor units. An event names a rule for each zone; other amounts for some kinds of seats.
create table pricing_rules (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  name text not null
    constraint pricing_rules_name_length check (char_length(name) between 1 and 120),
  currency text not null
    constraint pricing_rules_currency_form check (currency ~ '^[A-Z]{3}$'),
  amount_minor bigint not null
    constraint pricing_rules_amount_range check (amount_minor between 0 and 1000000000),
  by_category jsonb not null default '{}'
    constraint pricing_rules_categories_form check (jsonb_typeof(by_category) = 'object'),
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index pricing_rules_of_organization on pricing_rules (organization_id, id);
call keep_organizations_apart('pricing_rules');
grant select, insert, update, delete on pricing_rules to voelgoed_app;

-- What an event makes of a layout: which version it has, and what it says differently. Only differences: the seats stay
-- where they are. Without a layout the event has one zone of its own, sized by its capacity.
create table event_layouts (
  id uuid primary key,
  organization_id uuid not null,
  event_id uuid not null,
  layout_id uuid,
  layout_version integer,
  overrides jsonb not null default '{}'
    constraint event_layouts_overrides_form
    check (jsonb_typeof(overrides) = 'object' and octet_length(overrides::text) <= 8388608),
  -- Apart from the rest, which may be as large as the hall: every batch of holds reads it.
  seating_overrides jsonb generated always as (coalesce(overrides -> 'seating_overrides', '{}')) stored,
  version integer not null default 0,
  -- Whose work the places are that are being written piece by piece; nobody sees them until the event is published.
  making uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint event_layouts_one_each unique (organization_id, event_id),
  constraint event_layouts_pair_whole check ((layout_id is null) = (layout_version is null)),
  constraint event_layouts_event_in_organization foreign key (organization_id, event_id)
    references events (organization_id, id) on delete cascade,
  constraint event_layouts_layout_in_organization foreign key (organization_id, layout_id)
    references layouts (organization_id, id),
  constraint event_layouts_version_there foreign key (layout_id, layout_version)
    references layout_versions (layout_id, version)
);
create index event_layouts_of_layout on event_layouts (layout_id, layout_version)
  where layout_id is not null;
create index event_layouts_broken_off on event_layouts (updated_at) where making is not null;
call keep_organizations_apart('event_layouts');
grant select, insert, update, delete on event_layouts to voelgoed_app;
grant select on event_layouts, events, seats, layout_zones to voelgoed_registry;

create type seat_status as enum ('available', 'held', 'sold', 'blocked');

-- The seats of an event. What never changes stands first: the log of an update leaves out an equal beginning. No foreign
-- keys, which would halve what can be held in a second; only the functions of the registry write here.
create table event_seats (
  organization_id uuid not null,
  event_id uuid not null,
  ordinal integer not null,
  seat_id uuid not null,
  zone_id uuid not null,
  is_wheelchair boolean not null default false,
  version integer not null default 1,
  status seat_status not null default 'available',
  blocked_by text
    constraint event_seats_blocked_by_known check (blocked_by in ('layout', 'zone', 'staff')),
  held_until timestamptz,
  locked_at timestamptz,
  hold_id uuid,
  held_by uuid,
  ticket_id uuid,
  primary key (event_id, ordinal),
  constraint event_seats_blocked_by_somebody check ((status = 'blocked') = (blocked_by is not null)),
  constraint event_seats_held_by_hold check ((status = 'held') = (hold_id is not null)),
  constraint event_seats_held_by_somebody check ((status = 'held') = (held_by is not null)),
  constraint event_seats_held_for_a_time check ((status = 'held') = (held_until is not null)),
  constraint event_seats_sold_by_ticket check ((status = 'sold') = (ticket_id is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
-- No index on a column that changes: every update stays on its page. The seat first: with the event first nobody who plans
-- without figures could tell it from the key above, and would walk the hall for each seat.
create unique index event_seats_seat on event_seats (seat_id, event_id);
call keep_organizations_apart('event_seats');
grant select on event_seats to voelgoed_app;
grant select, insert, update, delete on event_seats to voelgoed_registry;

-- The zones of an event as it sells them. Places sold by number are counted here, seats are counted where they stand.
create table event_zones (
  organization_id uuid not null,
  event_id uuid not null,
  ordinal smallint not null,
  zone_id uuid not null,
  zone_code text not null,
  name text not null,
  zone_type text not null
    constraint event_zones_type_known
    check (zone_type in ('reserved_seating', 'ga_seated', 'ga_standing', 'vip_reserved', 'vip_standing')),
  access_mode text not null
    constraint event_zones_access_known check (access_mode in ('public', 'membership_tier', 'role_based', 'whitelist')),
  membership_tier text,
  allowed_roles text[] not null default '{}',
  is_enabled boolean not null,
  categories jsonb not null
    constraint event_zones_categories_form check (jsonb_typeof(categories) = 'object'),
  pricing_rule_id uuid,
  capacity integer not null,
  blocked integer not null default 0,
  held integer not null default 0,
  sold integer not null default 0,
  version integer not null default 1,
  primary key (event_id, zone_id),
  constraint event_zones_counts
    check (capacity >= 0 and blocked >= 0 and held >= 0 and sold >= 0 and blocked + held + sold <= capacity),
  constraint event_zones_seats_count_themselves
    check (zone_type not in ('reserved_seating', 'vip_reserved') or (held = 0 and sold = 0))
) with (fillfactor = 10);
call keep_organizations_apart('event_zones');
grant select on event_zones to voelgoed_app;
grant select, insert, update, delete on event_zones to voelgoed_registry;

grant insert on journal to voelgoed_registry;
grant usage on sequence journal_seq to voelgoed_registry;

create function guard_event_layout() returns trigger language plpgsql as 'begin return old; end';
create trigger event_layouts_guard before delete on event_layouts
  for each row execute function guard_event_layout();
create function guard_venue_offer() returns trigger language plpgsql as 'begin return new; end';
create trigger venues_offer_guard before update of max_capacity on venues
  for each row when (new.max_capacity < old.max_capacity) execute function guard_venue_offer();

-- A zone of a layout is written once, with its version.
alter table layout_zones add column created_at timestamptz not null default now();
alter table layout_zones add column updated_at timestamptz not null default now();
