-- People, what they may do where, and how they prove who they are.
-- Global tables (no organization's records): users, platform_roles, sessions, api_keys, one_time_tokens. They are found
-- by a secret or by an id, before anybody knows the organization.

alter table organizations add column suspended_at timestamptz;
-- The first part of a path is an organization's address; these are the server's own.
-- squawk-ignore constraint-missing-not-valid
alter table organizations add constraint organizations_slug_free
  check (slug not in ('api', 'assets', 'healthz', 'metrics', 'readyz', 'admin', 'platform'));

create table users (
  id uuid primary key,
  email text
    constraint users_email_form check (char_length(email) between 3 and 254 and email like '%_@_%'),
  password_hash text,
  name text not null
    constraint users_name_length check (char_length(name) between 1 and 200),
  locale text not null default 'en'
    constraint users_locale_known check (locale in ('en', 'af')),
  is_guest boolean not null default false,
  created_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint users_deleted_are_nameless check (deleted_at is null or (email is null and password_hash is null))
);
create unique index users_email_key on users (lower(email));
grant select, insert, update on users to voelgoed_app;

create table platform_roles (
  user_id uuid not null references users (id),
  role text not null
    constraint platform_roles_role_known check (role in ('super_admin', 'tenant_manager')),
  granted_at timestamptz not null default now(),
  primary key (user_id, role)
);
grant select, insert, delete on platform_roles to voelgoed_app;

create table org_members (
  organization_id uuid not null references organizations (id),
  user_id uuid not null references users (id),
  role text not null
    constraint org_members_role_known check (role in ('owner', 'admin', 'staff', 'scanner', 'customer')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (organization_id, user_id)
);
create index org_members_by_user on org_members (user_id);
call keep_organizations_apart('org_members');
grant select, insert, update, delete on org_members to voelgoed_app;

create table memberships (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  user_id uuid not null references users (id),
  tier text not null
    constraint memberships_tier_form check (tier ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  status text not null default 'active'
    constraint memberships_status_known check (status in ('active', 'revoked', 'expired')),
  valid_from timestamptz not null default now(),
  valid_to timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint memberships_period check (valid_to is null or valid_to > valid_from)
);
create index memberships_by_user on memberships (organization_id, user_id);
create unique index memberships_one_active on memberships (organization_id, user_id, tier) where status = 'active';
call keep_organizations_apart('memberships');
grant select, insert, update on memberships to voelgoed_app;

-- Only the hash of a token is kept: whoever reads this table cannot sign in with it.
create table sessions (
  id uuid primary key,
  token_hash bytea not null,
  user_id uuid not null references users (id),
  organization_id uuid not null references organizations (id),
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  revoked_at timestamptz,
  constraint sessions_token_hash_key unique (token_hash)
);
create index sessions_by_user on sessions (user_id) where revoked_at is null;
create index sessions_idle on sessions (last_seen_at);
grant select, insert, update, delete on sessions to voelgoed_app;

create table api_keys (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  name text not null
    constraint api_keys_name_length check (char_length(name) between 1 and 200),
  role text not null
    constraint api_keys_role_known check (role in ('admin', 'staff', 'scanner')),
  hint text not null,
  token_hash bytea not null,
  created_by uuid not null references users (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  constraint api_keys_token_hash_key unique (token_hash)
);
create index api_keys_by_organization on api_keys (organization_id, created_at);
grant select, insert, update on api_keys to voelgoed_app;

create table one_time_tokens (
  id uuid primary key,
  purpose text not null
    constraint one_time_tokens_purpose_known check (purpose in ('password_reset')),
  user_id uuid references users (id),
  organization_id uuid not null references organizations (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz
);
create index one_time_tokens_by_user on one_time_tokens (user_id) where used_at is null;
grant select, insert, update, delete on one_time_tokens to voelgoed_app;
