-- Invariants of the whole database. Each check returns the records that break it, with an id and a reason; no rows is ok.
-- They can run on a busy installation: each is one statement, so it sees one snapshot.
-- The checks against the journal are in journal_checks.sql.

-- name: two_active_holds_of_a_seat
select event_id || ' ' || seat_id as id, count(*) || ' active holds' as why
  from seat_holds
 where status = 'active' and seat_id is not null
 group by event_id, seat_id
having count(*) > 1
 limit $1;

-- name: held_seat_without_its_hold
select s.event_id || ' ' || s.seat_id as id, 'held by ' || s.hold_id || ', which is ' || coalesce(h.status::text, 'not there')
       as why
  from event_seats s
  left join seat_holds h on h.id = s.hold_id
 where s.status = 'held'
   and (h.id is null or h.status <> 'active' or h.seat_id is distinct from s.seat_id or h.event_id <> s.event_id
        or h.user_id <> s.held_by)
 limit $1;

-- name: active_hold_without_its_seat
select h.id::text as id, 'its seat is ' || coalesce(s.status::text, 'not there') as why
  from seat_holds h
  left join event_seats s on s.event_id = h.event_id and s.seat_id = h.seat_id
 where h.status = 'active' and h.seat_id is not null
   and (s.seat_id is null or s.status <> 'held' or s.hold_id <> h.id)
 limit $1;

-- name: sold_seat_without_a_ticket
select s.event_id || ' ' || s.seat_id as id, 'ticket ' || s.ticket_id || ' is ' || coalesce(t.status, 'not there') as why
  from event_seats s
  left join tickets t on t.id = s.ticket_id
 where s.status = 'sold'
   and (t.id is null or t.status <> 'valid' or t.seat_id is distinct from s.seat_id or t.event_id <> s.event_id)
 limit $1;

-- name: ticket_without_its_seat
select t.id::text as id, 'its seat is ' || coalesce(s.status::text, 'not there') as why
  from tickets t
  left join event_seats s on s.event_id = t.event_id and s.seat_id = t.seat_id
 where t.status = 'valid' and t.seat_id is not null and (s.seat_id is null or s.status <> 'sold' or s.ticket_id <> t.id)
 limit $1;

-- name: two_ends_of_a_hold
select h.id::text as id, 'the seat says ' || s.held_until || ', the hold ' || h.expires_at as why
  from event_seats s
  join seat_holds h on h.id = s.hold_id
 where s.status = 'held' and s.held_until <> h.expires_at
 limit $1;

-- name: zone_that_does_not_add_up
select z.event_id || ' ' || z.zone_id as id,
       'held ' || z.held || ' of ' || coalesce(h.n, 0) || ', sold ' || z.sold || ' of ' || coalesce(t.n, 0)
         || ', room for ' || z.capacity - z.blocked as why
  from event_zones z
  left join (select event_id, zone_id, sum(quantity) as n from seat_holds
              where status = 'active' and seat_id is null group by event_id, zone_id) as h
         on h.event_id = z.event_id and h.zone_id = z.zone_id
  left join (select event_id, zone_id, count(*) as n from tickets
              where status = 'valid' and seat_id is null group by event_id, zone_id) as t
         on t.event_id = z.event_id and t.zone_id = z.zone_id
 where z.held <> coalesce(h.n, 0) or z.sold <> coalesce(t.n, 0) or z.held + z.sold > z.capacity - z.blocked
 limit $1;

-- name: hold_across_organizations
select h.id::text as id, 'the event, the zone or the seat is another organization''s, or not there' as why
  from seat_holds h
  left join events e on e.id = h.event_id
  left join event_zones z on z.event_id = h.event_id and z.zone_id = h.zone_id
  left join event_seats s on s.event_id = h.event_id and s.seat_id = h.seat_id
 where e.organization_id is distinct from h.organization_id
    or (h.status = 'active'
        and (z.organization_id is distinct from h.organization_id
             or (h.seat_id is not null and s.organization_id is distinct from h.organization_id)))
 limit $1;

-- name: ticket_across_organizations
select t.id::text as id, 'its hold is not there, another''s, or not converted' as why
  from tickets t
  left join seat_holds h on h.id = t.hold_id
 where h.organization_id is distinct from t.organization_id or h.event_id is distinct from t.event_id
    or h.user_id is distinct from t.user_id or h.status <> 'converted'
 limit $1;

-- name: tickets_that_do_not_match_their_hold
select h.id::text as id, coalesce(t.n, 0) || ' tickets for ' || h.quantity || ' places' as why
  from seat_holds h
  left join (select hold_id, count(*) as n from tickets group by hold_id) as t on t.hold_id = h.id
 where (h.status = 'converted') and coalesce(t.n, 0) <> h.quantity
    or (h.status <> 'converted') and coalesce(t.n, 0) > 0
 limit $1;

-- name: hold_that_lasts_too_long
select id::text as id, 'until ' || expires_at || ', ' || extended_count || ' extensions' as why
  from seat_holds
 where expires_at > initial_expires_at + interval '5 minutes' or expires_at < initial_expires_at
    or (extended_count = 0 and expires_at <> initial_expires_at) or initial_expires_at > created_at + interval '60 minutes'
 limit $1;

-- name: hold_that_ended_at_the_wrong_time
-- Nobody loses a hold before its end, and nothing is sold by a hold whose end had come.
select id::text as id, status || ' at ' || ended_at || ', its end was ' || expires_at as why
  from seat_holds
 where (status = 'expired' and ended_at < expires_at) or (status = 'converted' and ended_at >= expires_at)
 limit $1;

-- name: holds_of_one_seat_at_one_time
-- A clock that was set back may have ended a hold before it began: that is no time at all.
select a.id || ' ' || b.id as id, 'both held ' || a.seat_id as why
  from seat_holds a
  join seat_holds b on b.event_id = a.event_id and b.seat_id = a.seat_id and b.id > a.id
   and tstzrange(a.created_at, greatest(a.created_at, coalesce(a.ended_at, a.expires_at)))
    && tstzrange(b.created_at, greatest(b.created_at, coalesce(b.ended_at, b.expires_at)))
 where a.seat_id is not null
 limit $1;

-- name: held_although_nothing_may_be
select h.id::text as id, 'the event is ' || e.status || ' since ' || e.updated_at as why
  from seat_holds h
  join events e on e.id = h.event_id
 where h.status = 'active' and e.status in ('cancelled', 'archived', 'draft')
   and e.updated_at < clock_timestamp() - interval '5 seconds'
 limit $1;
