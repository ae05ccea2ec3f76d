-- Holds and tickets: who has which place of an event, and for how long.

create type hold_status as enum ('active', 'converted', 'expired', 'cancelled');

-- What never changes stands first, as in event_seats. No foreign keys: ids are looked at by the functions that alone write
-- here, and by `voelgoed verify`.
create table seat_holds (
  id uuid primary key,
  organization_id uuid not null,
  event_id uuid not null,
  zone_id uuid not null,
  seat_id uuid,
  user_id uuid not null,
  quantity integer not null default 1
    constraint seat_holds_quantity_range check (quantity between 1 and 1000),
  source text not null default 'web'
    constraint seat_holds_source_known check (source in ('web', 'scanner', 'offline_sync', 'late_payment')),
  client_ip inet,
  cart_token text not null
    constraint seat_holds_cart_token_length check (char_length(cart_token) between 1 and 255),
  notes text
    constraint seat_holds_notes_length check (char_length(notes) <= 2000),
  created_at timestamptz not null default clock_timestamp(),
  initial_expires_at timestamptz not null,
  expires_at timestamptz not null,
  extended_count smallint not null default 0
    constraint seat_holds_extended_once check (extended_count between 0 and 1),
  status hold_status not null default 'active',
  updated_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  expired_at timestamptz generated always as (case when status = 'expired' then ended_at end) stored,
  converted_at timestamptz generated always as (case when status = 'converted' then ended_at end) stored,
  constraint seat_holds_end_after_begin check (expires_at > created_at and initial_expires_at > created_at),
  constraint seat_holds_never_shortened check (expires_at >= initial_expires_at),
  constraint seat_holds_bounded check (expires_at <= initial_expires_at + interval '5 minutes'),
  constraint seat_holds_one_seat_each check (seat_id is null or quantity = 1),
  constraint seat_holds_ended check ((status = 'active') = (ended_at is null))
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
-- Of one seat one hold is active, whatever goes wrong above.
create unique index seat_holds_active_seat on seat_holds (event_id, seat_id) where status = 'active' and seat_id is not null;
-- What lapses, for the reaper and for what is listed of an event; small, because only active holds stand in it.
create index seat_holds_active on seat_holds (event_id, expires_at) where status = 'active';
-- What somebody has held of late: limits, the own basket, a customer's history.
create index seat_holds_of_user on seat_holds (organization_id, user_id, created_at);
call keep_organizations_apart('seat_holds');
grant select on seat_holds to voelgoed_app;
-- Whose hold it is, and of what, never changes.
grant select, insert, update (notes, created_at, initial_expires_at, expires_at, extended_count, status, updated_at, ended_at)
  on seat_holds to voelgoed_registry;

-- Enough of a ticket to sell a place; what is printed on it comes later.
create table tickets (
  id uuid primary key,
  organization_id uuid not null,
  event_id uuid not null,
  zone_id uuid not null,
  seat_id uuid,
  hold_id uuid not null,
  item integer not null
    constraint tickets_item_range check (item between 1 and 1000),
  user_id uuid not null,
  order_id uuid not null,
  status text not null default 'valid'
    constraint tickets_status_known check (status in ('valid', 'void')),
  created_at timestamptz not null default clock_timestamp(),
  voided_at timestamptz,
  constraint tickets_of_hold unique (hold_id, item),
  constraint tickets_voided check ((status = 'void') = (voided_at is not null))
);
create unique index tickets_of_seat on tickets (event_id, seat_id) where status = 'valid' and seat_id is not null;
create index tickets_of_event on tickets (event_id, zone_id);
create index tickets_of_user on tickets (organization_id, user_id, created_at);
call keep_organizations_apart('tickets');
grant select on tickets to voelgoed_app;
grant select, insert, update (status, voided_at) on tickets to voelgoed_registry;

grant select on memberships to voelgoed_registry;
grant select, insert on idempotency_keys to voelgoed_registry;
grant usage on type seat_status, hold_status to voelgoed_registry, voelgoed_app;
-- To share the lock of an event one must be able to change something of it; the registry changes nothing.
grant update (updated_at) on events to voelgoed_registry;
