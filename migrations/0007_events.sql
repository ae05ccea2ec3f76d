-- Venues with their gates, and the events that take place there.

create table venues (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  name text not null
    constraint venues_name_length check (char_length(name) between 1 and 200),
  slug text not null
    constraint venues_slug_form check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  timezone text not null
    constraint venues_timezone_length check (char_length(timezone) between 1 and 64),
  address jsonb not null default '{}'
    constraint venues_address_form check (jsonb_typeof(address) = 'object' and octet_length(address::text) <= 4096),
  -- The outer bound of whatever takes place here; 0 is a venue without a public.
  max_capacity integer not null
    constraint venues_max_capacity_range check (max_capacity between 0 and 1000000),
  settings jsonb not null default '{}'
    constraint venues_settings_form check (jsonb_typeof(settings) = 'object' and octet_length(settings::text) <= 20480),
  version integer not null default 1,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint venues_slug_key unique (organization_id, slug),
  constraint venues_in_organization unique (organization_id, id)
);
call keep_organizations_apart('venues');
grant select, insert, update, delete on venues to voelgoed_app;

create table gates (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  venue_id uuid not null,
  gate_code text not null
    constraint gates_code_form check (gate_code ~ '^[A-Z0-9][A-Z0-9_-]{0,31}$'),
  name text not null
    constraint gates_name_length check (char_length(name) between 1 and 200),
  status text not null default 'closed'
    constraint gates_status_known check (status in ('open', 'closed')),
  capacity integer
    constraint gates_capacity_range check (capacity between 1 and 1000000),
  settings jsonb not null default '{}'
    constraint gates_settings_form check (jsonb_typeof(settings) = 'object' and octet_length(settings::text) <= 20480),
  version integer not null default 1,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint gates_code_key unique (venue_id, gate_code),
  constraint gates_venue_in_organization foreign key (organization_id, venue_id) references venues (organization_id, id)
);
create index gates_of_organization on gates (organization_id, venue_id);
call keep_organizations_apart('gates');
grant select, insert, update, delete on gates to voelgoed_app;

create table events (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  venue_id uuid not null,
  name text not null
    constraint events_name_length check (char_length(name) between 1 and 200),
  slug text not null
    constraint events_slug_form check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  description text not null default ''
    constraint events_description_length check (char_length(description) <= 20000),
  status text not null default 'draft'
    constraint events_status_known
    check (status in ('draft', 'published', 'live', 'ended', 'cancelled', 'postponed', 'archived')),
  start_at timestamptz not null,
  end_at timestamptz not null,
  -- Without a start the sale opens with publication, without an end it goes on until the event is over.
  sale_start_at timestamptz,
  sale_end_at timestamptz,
  capacity integer
    constraint events_capacity_range check (capacity between 0 and 1000000),
  settings jsonb not null default '{}'
    constraint events_settings_form check (jsonb_typeof(settings) = 'object' and octet_length(settings::text) <= 20480),
  replaced_by_event_id uuid,
  recurrence_group_id uuid,
  rescheduled_at timestamptz,
  rescheduled_end_at timestamptz,
  postponement_reason text
    constraint events_postponement_reason_length check (char_length(postponement_reason) between 1 and 200),
  is_automatic boolean not null default true,
  -- When it takes place as things stand. Kept, because lists are ordered and cut by it.
  effective_start_at timestamptz not null generated always as (coalesce(rescheduled_at, start_at)) stored,
  effective_end_at timestamptz not null generated always as (coalesce(rescheduled_end_at, end_at)) stored,
  version integer not null default 1,
  inventory_epoch integer not null default 0,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint events_slug_key unique (organization_id, slug),
  constraint events_in_organization unique (organization_id, id),
  constraint events_venue_in_organization foreign key (organization_id, venue_id)
    references venues (organization_id, id),
  constraint events_replacement_in_organization foreign key (organization_id, replaced_by_event_id)
    references events (organization_id, id),
  constraint events_time_order check (start_at < end_at),
  constraint events_sale_order check (sale_start_at < sale_end_at),
  constraint events_new_date_whole check ((rescheduled_at is null) = (rescheduled_end_at is null)),
  constraint events_new_date_order check (rescheduled_at < rescheduled_end_at),
  constraint events_postponed_only check (status = 'postponed' or (rescheduled_at is null and postponement_reason is null)),
  constraint events_not_replaced_by_itself check (replaced_by_event_id <> id)
);
create index events_by_status on events (organization_id, status, effective_start_at, id);
create index events_by_start on events (organization_id, start_at);
create index events_by_time on events (organization_id, effective_start_at, id);
create index events_of_venue on events (organization_id, venue_id, effective_start_at, id);
create index events_of_series on events (organization_id, recurrence_group_id) where recurrence_group_id is not null;
create index events_replacing on events (organization_id, replaced_by_event_id) where replaced_by_event_id is not null;
-- What a storefront may show, in the order in which it is shown; the end is carried along because it is asked for.
create index events_upcoming on events (organization_id, effective_start_at, id) include (effective_end_at)
  where status in ('published', 'live', 'postponed');
-- What the clock has to move.
create index events_to_go_live on events (effective_start_at)
  where is_automatic and status in ('published', 'postponed');
create index events_to_end on events (effective_end_at) where is_automatic and status = 'live';
call keep_organizations_apart('events');
grant select, insert, update, delete on events to voelgoed_app;

-- A number for all that an organization shows of its events and venues, raised by every change of them. What is
-- cached carries the number it was read under, so that a lost message can make it old for a second, not for a day.
create table event_catalogues (
  organization_id uuid primary key references organizations (id),
  version bigint not null default 1,
  staff_may_change_venues boolean not null default false
);
call keep_organizations_apart('event_catalogues');
grant select, insert, update on event_catalogues to voelgoed_app;

-- The functions are re-applied with every migration run; a trigger needs its function to be there first.
create function guard_event() returns trigger language plpgsql as 'begin return coalesce(new, old); end';
create trigger events_guard before insert or update or delete on events for each row execute function guard_event();
