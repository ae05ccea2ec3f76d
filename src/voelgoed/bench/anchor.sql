-- What PostgreSQL can do on this machine without us: the same three writes, no row-level security, no limits, no triggers,
-- no journal order. One hold a call, and many at once.
create table seats (
  event integer not null, seat integer not null, status smallint not null default 0, version integer not null default 1,
  hold uuid, held_until timestamptz,
  primary key (event, seat)
) with (fillfactor = 70);
create table holds (
  id uuid primary key default gen_random_uuid(), event integer not null, seat integer not null, holder bigint not null,
  status smallint not null default 1, created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create unique index holds_active on holds (event, seat) where status = 1;
create index holds_expiry on holds (expires_at) where status = 1;
create table facts (
  id bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(), kind text not null,
  event integer not null, seat integer not null, version integer not null, data jsonb not null
);

create function hold_one(e integer, s integer, u bigint) returns integer
language plpgsql
as $$
declare
  until timestamptz := clock_timestamp() + interval '10 minutes';
  new_hold uuid := gen_random_uuid();
  now_version integer;
begin
  update seats set status = 1, version = version + 1, hold = new_hold, held_until = until
   where event = e and seat = s and status = 0
  returning version into now_version;
  if not found then
    return null;
  end if;
  insert into holds (id, event, seat, holder, expires_at) values (new_hold, e, s, u, until);
  insert into facts (kind, event, seat, version, data)
  values ('seat_reserved', e, s, now_version, jsonb_build_object('hold_id', new_hold, 'held_until', until));
  return now_version;
end
$$;

create function hold_many(e integer, first integer, n integer) returns integer
language plpgsql
as $$
declare
  until timestamptz := clock_timestamp() + interval '10 minutes';
  given integer;
begin
  with taken as (
    update seats set status = 1, version = version + 1, hold = gen_random_uuid(), held_until = until
     where event = e and seat >= first and seat < first + n and status = 0
    returning event, seat, version, hold
  ), held as (
    insert into holds (id, event, seat, holder, expires_at) select hold, event, seat, seat, until from taken
  ), told as (
    insert into facts (kind, event, seat, version, data)
    select 'seat_reserved', event, seat, version, jsonb_build_object('hold_id', hold, 'held_until', until) from taken
  )
  select count(*) into given from taken;
  return given;
end
$$;

create function expire_many(n integer) returns integer
language plpgsql
as $$
declare
  freed integer;
begin
  with due as (
    select id, event, seat from holds where status = 1 and expires_at <= clock_timestamp()
     order by expires_at limit n for no key update skip locked
  ), ended as (
    update holds h set status = 2 from due d where h.id = d.id
  ), free as (
    update seats s set status = 0, version = version + 1, hold = null, held_until = null
      from due d where s.event = d.event and s.seat = d.seat
    returning s.event, s.seat, s.version, d.id
  ), told as (
    insert into facts (kind, event, seat, version, data)
    select 'seat_hold_expired', event, seat, version, jsonb_build_object('hold_id', id) from free
  )
  select count(*) into freed from free;
  return freed;
end
$$;
