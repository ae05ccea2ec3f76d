-- Layouts of venues: a lineage with numbered versions that never change, their zones, seats and groups.

create table layouts (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  venue_id uuid not null,
  name text not null
    constraint layouts_name_length check (char_length(name) between 1 and 120),
  -- The last number that was given to a version; one whose making was broken off is not given again.
  version_last integer not null default 0,
  -- And the last that was given to a seat.
  serial_last integer not null default 0,
  zone_serials jsonb not null default '{}'
    constraint layouts_zone_serials_form check (jsonb_typeof(zone_serials) = 'object'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint layouts_in_organization unique (organization_id, id),
  constraint layouts_venue_in_organization foreign key (organization_id, venue_id) references venues (organization_id, id)
);
create index layouts_of_venue on layouts (organization_id, venue_id);
call keep_organizations_apart('layouts');
grant select, insert, update on layouts to voelgoed_app;

-- Every code a layout ever had, with the number that its seat id is made of: given once, never again. Without a foreign
-- key, as `seats` below: to check it for every row would take longer than to write the row.
create table layout_seats (
  organization_id uuid not null,
  layout_id uuid not null,
  seat_code text not null
    constraint layout_seats_code_length check (char_length(seat_code) between 1 and 80),
  serial integer not null
    constraint layout_seats_serial_range check (serial > 0),
  primary key (layout_id, seat_code)
);
call keep_organizations_apart('layout_seats');
grant select, insert on layout_seats to voelgoed_app;

create table layout_versions (
  organization_id uuid not null,
  layout_id uuid not null,
  version integer not null
    constraint layout_versions_version_range check (version > 0),
  status text not null default 'draft'
    constraint layout_versions_status_known check (status in ('draft', 'active', 'archived')),
  name text not null
    constraint layout_versions_name_length check (char_length(name) between 1 and 120),
  description text
    constraint layout_versions_description_length check (char_length(description) <= 2000),
  total_capacity integer not null
    constraint layout_versions_capacity_range check (total_capacity >= 0),
  seat_count integer not null
    constraint layout_versions_seat_count_range check (seat_count between 0 and 100000),
  shapes jsonb not null default '[]',
  -- The document that browsers read, compressed once. Until it is there the version is still being made.
  geometry bytea,
  geometry_etag text,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (layout_id, version),
  constraint layout_versions_in_organization foreign key (organization_id, layout_id)
    references layouts (organization_id, id),
  constraint layout_versions_geometry_named check ((geometry is null) = (geometry_etag is null)),
  constraint layout_versions_unfinished_are_drafts check (geometry is not null or status = 'draft')
);
alter table layout_versions alter column geometry set storage external;  -- it is compressed already
create unique index layout_versions_one_active on layout_versions (layout_id) where status = 'active';
create index layout_versions_unfinished on layout_versions (created_at) where geometry is null;
call keep_organizations_apart('layout_versions');
grant select, insert, update on layout_versions to voelgoed_app;

create table layout_zones (
  organization_id uuid not null,
  layout_id uuid not null,
  version integer not null,
  ordinal smallint not null,
  zone_id uuid not null,
  zone_code text not null,
  name text not null,
  zone_type text not null
    constraint layout_zones_type_known
    check (zone_type in ('reserved_seating', 'ga_seated', 'ga_standing', 'vip_reserved', 'vip_standing')),
  capacity integer not null
    constraint layout_zones_capacity_range check (capacity >= 0),
  access_mode text not null
    constraint layout_zones_access_known check (access_mode in ('public', 'membership_tier', 'role_based', 'whitelist')),
  membership_tier text,
  allowed_roles text[] not null default '{}',
  focal_x integer,
  focal_y integer,
  outline integer[] not null default '{}',
  row_labels text[] not null default '{}',
  metadata jsonb not null default '{}',
  primary key (layout_id, version, ordinal),
  constraint layout_zones_of_version foreign key (layout_id, version) references layout_versions (layout_id, version)
);
call keep_organizations_apart('layout_zones');
grant select, insert on layout_zones to voelgoed_app;

-- What a seat is, in one version. Whether it is free is an event's affair and stands elsewhere.
create table seats (
  organization_id uuid not null,
  layout_id uuid not null,
  version integer not null,
  ordinal integer not null,
  seat_id uuid not null,
  seat_code text not null,
  zone_ordinal smallint not null,
  row_ordinal smallint not null,
  number integer not null,
  label text not null,
  position smallint not null,
  segment smallint not null,
  x integer not null,
  y integer not null,
  category text not null
    constraint seats_category_known check (category in ('standard', 'wheelchair', 'companion', 'restricted_view', 'aisle')),
  companion_of integer,
  primary key (layout_id, version, ordinal)
);
call keep_organizations_apart('seats');
grant select, insert on seats to voelgoed_app;

create table seat_groups (
  organization_id uuid not null,
  layout_id uuid not null,
  version integer not null,
  ordinal integer not null,
  zone_ordinal smallint not null,
  group_code text not null,
  kind text not null
    constraint seat_groups_kind_known check (kind in ('wheelchair_pair', 'family_block', 'vip_table', 'reserved_block')),
  label text not null,
  seat_ordinals integer[] not null,
  metadata jsonb not null default '{}',
  primary key (layout_id, version, ordinal),
  constraint seat_groups_of_version foreign key (layout_id, version) references layout_versions (layout_id, version)
);
call keep_organizations_apart('seat_groups');
grant select, insert on seat_groups to voelgoed_app;

create function guard_layout_version() returns trigger language plpgsql as 'begin return coalesce(new, old); end';
create trigger layout_versions_guard before update or delete on layout_versions
  for each row execute function guard_layout_version();
create function guard_whole_version() returns trigger language plpgsql as 'begin return null; end';
create trigger layout_zones_guard after insert on layout_zones
  referencing new table as added for each statement execute function guard_whole_version();
create trigger seats_guard after insert on seats
  referencing new table as added for each statement execute function guard_whole_version();
create trigger seat_groups_guard after insert on seat_groups
  referencing new table as added for each statement execute function guard_whole_version();
create function guard_venue_room() returns trigger language plpgsql as 'begin return new; end';
create trigger venues_guard before update of max_capacity on venues
  for each row when (new.max_capacity < old.max_capacity) execute function guard_venue_room();
