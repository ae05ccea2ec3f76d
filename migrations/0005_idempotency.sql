-- What was asked for with an Idempotency-Key, and what came of it. The row commits with the effect itself.
-- Uniqueness is kept by an advisory lock on the key (see accounts/idempotency.py): a unique index over daily partitions
-- could not span midnight.

create table idempotency_keys (
  organization_id uuid not null,
  owner_id uuid not null,
  key text not null
    constraint idempotency_keys_key_length check (char_length(key) between 1 and 200),
  fingerprint bytea not null,
  result jsonb not null,
  created_at timestamptz not null default now()
) partition by range (created_at);
create index idempotency_keys_by_key on idempotency_keys (organization_id, owner_id, key);
call keep_organizations_apart('idempotency_keys');
grant select, insert on idempotency_keys to voelgoed_app;
