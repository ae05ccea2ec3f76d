-- The journal: every fact of every domain, written in the transaction of the change itself. It is audit trail, outbox
-- and seat ledger at once. Append-only by privilege: nobody who runs the product may change or remove a line.

create sequence journal_seq as bigint cache 32;

create table journal (
  xid xid8 not null default pg_current_xact_id(),
  seq bigint not null default nextval('journal_seq'),
  recorded_at timestamptz not null default clock_timestamp(),
  organization_id uuid not null,
  event_id uuid,
  seat_id uuid,
  version bigint,
  kind text not null
    constraint journal_kind_form check (kind ~ '^[a-z][a-z0-9_]{0,62}$'),
  actor_id uuid,
  origin_id uuid,
  request_id uuid,
  reason text
    constraint journal_reason_length check (char_length(reason) <= 2000),
  data jsonb not null default '{}'
) partition by range (recorded_at);

-- Readers follow the order of commits: see the decision on the journal's order.
create index journal_commit_order on journal (xid, seq);
create index journal_by_organization on journal (organization_id, recorded_at);

call keep_organizations_apart('journal');
grant select, insert on journal to voelgoed_app;
grant usage on sequence journal_seq to voelgoed_app;
