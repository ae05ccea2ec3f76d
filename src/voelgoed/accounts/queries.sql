-- name: add_organization
-- The slug is the organization's address, so the second one to ask for it is told, not merged.
insert into organizations (id, slug, name)
values ($1, $2, $3)
returning id, slug, name, created_at, suspended_at;

-- name: find_organization
select id, slug, name, created_at, suspended_at
  from organizations
 where slug = $1;

-- name: get_organization
select id, slug, name, created_at, suspended_at
  from organizations
 where id = $1;

-- name: list_organizations
-- system: the platform's own list.
select id, slug, name, created_at, suspended_at
  from organizations
 where ($1::uuid is null or id > $1)
 order by id
 limit $2;

-- name: set_suspended
-- Repeating it changes nothing: the first moment stays.
update organizations
   set suspended_at = case when $2 then coalesce(suspended_at, now()) end
 where id = $1
returning id, slug, name, created_at, suspended_at;

-- name: add_user
insert into users (id, email, password_hash, name, locale, is_guest)
values ($1, $2, $3, $4, $5, $6)
returning id, email, name, locale, is_guest, created_at;

-- name: find_user_by_email
-- system: people are known to the whole installation.
select id, email, name, locale, is_guest, created_at, password_hash
  from users
 where lower(email) = $1
   and deleted_at is null;

-- name: get_user
-- system: people are known to the whole installation.
select id, email, name, locale, is_guest, created_at, password_hash
  from users
 where id = $1
   and deleted_at is null;

-- name: lock_user
-- system: people are known to the whole installation. Whoever changes or deletes the account meanwhile waits, or is
-- seen here: a session is never made on what was true a moment ago.
select password_hash
  from users
 where id = $1
   and deleted_at is null
   for share;

-- name: claim_guest
-- A guest who registers stays the same person, with everything held so far.
update users
   set email = $2, password_hash = $3, name = $4, locale = $5, is_guest = false
 where id = $1
   and is_guest
   and deleted_at is null
returning id, email, name, locale, is_guest, created_at;

-- name: change_user
update users
   set name = $2, locale = $3
 where id = $1
   and deleted_at is null
returning id, email, name, locale, is_guest, created_at;

-- name: set_password_hash
update users
   set password_hash = $2
 where id = $1
   and deleted_at is null;

-- name: forget_user
-- The row stays for what refers to it, the person in it does not.
update users
   set email = null, password_hash = null, name = 'Deleted', is_guest = false, deleted_at = now()
 where id = $1
   and deleted_at is null
returning id;

-- name: organizations_of_user
-- system: a person's own list, across organizations.
select m.organization_id, o.slug, o.name, m.role
  from org_members m
  join organizations o on o.id = m.organization_id
 where m.user_id = $1
 order by o.slug
 limit 200;

-- name: grant_platform_role
insert into platform_roles (user_id, role)
values ($1, $2)
    on conflict do nothing;

-- name: withdraw_platform_role
delete from platform_roles
 where user_id = $1
   and role = $2;

-- name: lock_platform_roles
-- Whoever takes one away waits here for whoever else does, so that two cannot each remove the other; who reads them does not.
lock table platform_roles in share row exclusive mode;

-- name: list_super_admins
select p.user_id
  from platform_roles p
  join users u on u.id = p.user_id and u.deleted_at is null
 where p.role = 'super_admin';

-- name: find_member_by_email
select m.user_id, u.email, u.name, u.is_guest, m.role, m.created_at, m.updated_at
  from org_members m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and lower(u.email) = $2;

-- name: lock_owners
-- Whoever changes an owner waits here for whoever else does, so that two cannot each remove the other.
select user_id
  from org_members
 where organization_id = $1
   and role = 'owner'
 order by user_id
   for update;

-- name: join_as_customer
-- The first visit to a storefront makes a customer; whoever is more already stays it.
insert into org_members (organization_id, user_id, role)
values ($1, $2, 'customer')
    on conflict (organization_id, user_id) do nothing;

-- name: set_member
insert into org_members (organization_id, user_id, role)
values ($1, $2, $3)
    on conflict (organization_id, user_id) do update
   set role = excluded.role, updated_at = now();

-- name: get_member
select m.user_id, u.email, u.name, u.is_guest, m.role, m.created_at, m.updated_at
  from org_members m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and m.user_id = $2;

-- name: name_members
select m.user_id, u.email, u.name, u.is_guest, m.role, m.created_at, m.updated_at
  from org_members m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and m.user_id = any ($2::uuid[]);

-- name: list_members
-- What is looked for is a part of a name or an address, as it is: no sign in it stands for others.
select m.user_id, u.email, u.name, u.is_guest, m.role, m.created_at, m.updated_at
  from org_members m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and ($2::text[] is null or m.role = any($2))
   and ($3::text is null or strpos(lower(u.name), lower($3)) > 0 or strpos(lower(u.email), lower($3)) > 0)
   and ($4::uuid is null or m.user_id > $4)
 order by m.user_id
 limit $5;

-- name: name_people
-- What people and programs of an organization are called; of anybody else nothing is said.
select m.user_id as id, u.name
  from org_members m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and m.user_id = any($2)
 union all
select id, name
  from api_keys
 where organization_id = $1
   and id = any($2);

-- name: remove_member
delete from org_members
 where organization_id = $1
   and user_id = $2
returning user_id;

-- name: add_membership
with made as (
  insert into memberships (id, organization_id, user_id, tier, valid_from, valid_to)
  values ($2, $1, $3, $4, coalesce($5, now()), $6)
  returning id, user_id, tier, status, valid_from, valid_to, created_at, updated_at
)
select made.*, u.name, u.email
  from made
  join users u on u.id = made.user_id;

-- name: get_membership
select m.id, m.user_id, m.tier, m.status, m.valid_from, m.valid_to, m.created_at, m.updated_at, u.name, u.email
  from memberships m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and m.id = $2;

-- name: list_memberships
-- Each with whose it is. What is looked for is a part of the person's name or address, or of the tier.
select m.id, m.user_id, m.tier, m.status, m.valid_from, m.valid_to, m.created_at, m.updated_at, u.name, u.email
  from memberships m
  join users u on u.id = m.user_id
 where m.organization_id = $1
   and ($2::uuid is null or m.user_id = $2)
   and ($3::text is null or m.status = $3)
   and ($4::text is null or strpos(lower(u.name), lower($4)) > 0 or strpos(lower(u.email), lower($4)) > 0
        or strpos(m.tier, lower($4)) > 0)
   and ($5::uuid is null or m.id > $5)
 order by m.id
 limit $6;

-- name: revoke_membership
with ended as (
  update memberships
     set status = 'revoked', updated_at = now()
   where organization_id = $1
     and id = $2
     and status = 'active'
  returning id, user_id, tier, status, valid_from, valid_to, created_at, updated_at
)
select ended.*, u.name, u.email
  from ended
  join users u on u.id = ended.user_id;

-- name: revoke_memberships_of_user
update memberships
   set status = 'revoked', updated_at = now()
 where organization_id = $1
   and user_id = $2
   and status = 'active';

-- name: add_session
insert into sessions (id, token_hash, user_id, organization_id)
values ($1, $2, $3, $4);

-- name: find_sessions
-- system: the tokens are all there is to go by; each row names its organization.
select s.token_hash, s.id as session_id, s.user_id, s.organization_id, o.slug, o.name as organization_name, o.suspended_at,
       u.name as user_name, u.is_guest, m.role,
       array(select p.role from platform_roles p where p.user_id = s.user_id) as platform_roles,
       extract(epoch from clock_timestamp() - s.last_seen_at)::float8 as idle_s
  from sessions s
  join users u on u.id = s.user_id and u.deleted_at is null
  join organizations o on o.id = s.organization_id
  join org_members m on m.organization_id = s.organization_id and m.user_id = s.user_id
 where s.token_hash = any ($1::bytea[])
   and s.revoked_at is null;

-- name: list_sessions
-- system: a person's own list, across organizations.
select s.id, o.slug, o.name, s.created_at, s.last_seen_at
  from sessions s
  join organizations o on o.id = s.organization_id
 where s.user_id = $1
   and s.revoked_at is null
   and s.last_seen_at > now() - make_interval(secs => $2)
 order by s.last_seen_at desc
 limit 200;

-- name: revoke_session
-- system: a session belongs to a person.
update sessions
   set revoked_at = now()
 where id = $1
   and user_id = $2
   and revoked_at is null
returning id;

-- name: revoke_sessions_of_user
-- system: wherever the person is signed in. $2 is the session that stays, if any.
update sessions
   set revoked_at = now()
 where user_id = $1
   and revoked_at is null
   and ($2::uuid is null or id <> $2);

-- name: revoke_sessions_in
-- Wherever the person is signed in at this organization.
update sessions
   set revoked_at = now()
 where organization_id = $1
   and user_id = $2
   and revoked_at is null;

-- name: touch_sessions
-- system: what a process saw of many sessions, as ages: its clock and ours may differ.
-- Locked in one order, so that two processes never wait for each other.
with seen as (
  select id, clock_timestamp() - make_interval(secs => age_s) as seen_at
    from unnest($1::uuid[], $2::float8[]) as t (id, age_s)
), locked as (
  select id from sessions where id = any ($1) order by id for update
)
update sessions s
   set last_seen_at = greatest(s.last_seen_at, seen.seen_at)
  from seen
  join locked on locked.id = seen.id
 where s.id = seen.id;

-- name: purge_sessions
-- system: sessions that nobody can use any more, a batch at a time.
delete from sessions
 where id in (select id from sessions where last_seen_at < now() - make_interval(days => $1) order by last_seen_at limit $2);

-- name: add_api_key
insert into api_keys (id, organization_id, name, role, hint, token_hash, created_by, expires_at)
values ($2, $1, $3, $4, $5, $6, $7, $8)
returning id, name, role, hint, created_by, created_at, expires_at, last_used_at, revoked_at;

-- name: get_api_key
select id, name, role, hint, created_by, created_at, expires_at, last_used_at, revoked_at
  from api_keys
 where organization_id = $1
   and id = $2;

-- name: list_api_keys
select id, name, role, hint, created_by, created_at, expires_at, last_used_at, revoked_at
  from api_keys
 where organization_id = $1
   and ($2::uuid is null or id > $2)
 order by id
 limit $3;

-- name: revoke_api_key
update api_keys
   set revoked_at = now()
 where organization_id = $1
   and id = $2
   and revoked_at is null
returning id, name, role, hint, created_by, created_at, expires_at, last_used_at, revoked_at;

-- name: find_api_key
-- system: the token is all there is to go by; the row names the organization.
-- A key lives as long as whoever made it leads there: it can do no more than they could.
select k.id, k.organization_id, k.created_by, o.slug, o.name as organization_name, k.role, k.name
  from api_keys k
  join organizations o on o.id = k.organization_id
  join org_members m on m.organization_id = k.organization_id and m.user_id = k.created_by
       and m.role in ('owner', 'admin')
 where k.token_hash = $1
   and k.revoked_at is null
   and (k.expires_at is null or k.expires_at > clock_timestamp())
   and o.suspended_at is null;

-- name: touch_api_keys
-- system: as touch_sessions.
with seen as (
  select id, clock_timestamp() - make_interval(secs => age_s) as seen_at
    from unnest($1::uuid[], $2::float8[]) as t (id, age_s)
), locked as (
  select id from api_keys where id = any ($1) order by id for update
)
update api_keys k
   set last_used_at = greatest(k.last_used_at, seen.seen_at)
  from seen
  join locked on locked.id = seen.id
 where k.id = seen.id;

-- name: add_one_time_token
-- Written for unknown people too, with nobody in it: the time it takes tells nothing.
insert into one_time_tokens (id, purpose, user_id, organization_id, expires_at)
values ($1, $2, $3, $4, now() + make_interval(secs => $5));

-- name: get_one_time_token
-- system: what the sender of the mail needs to know.
select t.user_id, t.organization_id, o.slug, o.name as organization_name, u.email, u.name, u.locale
  from one_time_tokens t
  join users u on u.id = t.user_id and u.deleted_at is null
  join organizations o on o.id = t.organization_id
 where t.id = $1
   and t.used_at is null
   and t.expires_at > clock_timestamp();

-- name: use_one_time_token
-- system: found by the secret. Two who use it at once: one gets the row.
update one_time_tokens
   set used_at = now()
 where id = $1
   and purpose = $2
   and used_at is null
   and expires_at > clock_timestamp()
   and user_id is not null
returning user_id, organization_id;

-- name: use_up_one_time_tokens
-- system: once one link was used, or the password changed, the others are worth nothing.
update one_time_tokens
   set used_at = now()
 where user_id = $1
   and purpose = $2
   and used_at is null;

-- name: purge_one_time_tokens
-- system: long over, a batch at a time.
delete from one_time_tokens
 where id in (select id from one_time_tokens where expires_at < now() - interval '1 day' limit $1);

-- name: lock_idempotency_key
-- One at a time for one key of one owner; the hash may make strangers wait, never mix them up.
select pg_advisory_xact_lock(hashtextextended($1::text || $2::text || $3::text, 651));

-- name: find_idempotency_key
select fingerprint, result
  from idempotency_keys
 where organization_id = $1
   and owner_id = $2
   and key = $3
   and created_at > now() - interval '48 hours';

-- name: add_idempotency_key
insert into idempotency_keys (organization_id, owner_id, key, fingerprint, result)
values ($1, $2, $3, $4, $5);

-- name: keep_idempotency_partitions
-- system: days belong to the installation.
select keep_idempotency_partitions($1);
