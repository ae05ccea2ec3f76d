-- What stands above PostgreSQL: who tells it on, how full events were, and what to do when the clock jumps.

-- Of several workers one at a time does what only one should; it says so again before its time is up.
create table leases (
  name text primary key,
  holder uuid not null,
  held_until timestamptz not null
);
grant select, insert, update on leases to voelgoed_app;

-- Every rebuild of an event's map in Redis has a number of its own. What carries a lower one than the last recovery is
-- from before it, whoever brought it back.
create sequence projection_epochs as bigint;
grant usage on sequence projection_epochs to voelgoed_app;

-- A clock that jumps ahead would make everybody's holds lapse at once: until this moment none is taken over.
create table clock_guard (
  id smallint primary key default 1
    constraint clock_guard_only_one check (id = 1),
  lapses_from timestamptz not null
);
insert into clock_guard (lapses_from) values ('-infinity');
grant select, update (lapses_from) on clock_guard to voelgoed_app;
grant select on clock_guard to voelgoed_registry;

-- Where asks for holds come from is written with what comes of them.
grant select, insert on origins to voelgoed_registry;

-- How full an event was, a row for each minute in which something changed.
create table occupancy_snapshots (
  organization_id uuid not null,
  event_id uuid not null,
  taken_at timestamptz not null,
  available integer not null,
  held integer not null,
  sold integer not null,
  blocked integer not null,
  zones jsonb not null
    constraint occupancy_snapshots_zones_form check (jsonb_typeof(zones) = 'array'),
  primary key (event_id, taken_at),
  constraint occupancy_snapshots_not_negative check (available >= 0 and held >= 0 and sold >= 0 and blocked >= 0),
  constraint occupancy_snapshots_event_in_organization foreign key (organization_id, event_id)
    references events (organization_id, id) on delete cascade
);
create index occupancy_snapshots_of_event on occupancy_snapshots (organization_id, event_id, taken_at);
create index occupancy_snapshots_by_age on occupancy_snapshots (taken_at);
call keep_organizations_apart('occupancy_snapshots');
grant select, insert, update, delete on occupancy_snapshots to voelgoed_app;
