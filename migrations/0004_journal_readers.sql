-- Who reads the journal and how far they are, where facts came from, and what the audit search stands on.

-- Where a request came from, apart from the facts: the journal is append-only, an address must not be kept for ever.
-- After the time of keeping, address and browser are emptied; the fact keeps its origin's id and the session.
create table origins (
  id uuid primary key,
  organization_id uuid not null,
  session_id uuid,
  ip inet,
  user_agent text
    constraint origins_user_agent_length check (char_length(user_agent) <= 400),
  first_seen_at timestamptz not null default now()
);
-- The purge asks only for what it has not emptied yet, so that it never walks the old rows again.
create index origins_to_purge on origins (first_seen_at) where ip is not null or user_agent is not null;
call keep_organizations_apart('origins');
grant select, insert, update (ip, user_agent) on origins to voelgoed_app;

-- The place of a fact in the order of the journal: the number of its transaction, or of the last one that had ended when
-- the fact was told, if that is later. So who waited for a lock comes after whoever had it, even with a transaction that
-- began before. Volatile: it must look at this moment, not at the moment when the statement began. See the decision
-- on the journal's order.
create function journal_number() returns xid8 language plpgsql volatile as $$
begin
  return greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)::text::xid8);
end
$$;
revoke all on function journal_number() from public;
grant execute on function journal_number() to voelgoed_app, voelgoed_registry;
alter table journal alter column xid set default journal_number();
-- Among facts with the same number the sequence decides, so no connection may keep numbers in stock.
alter sequence journal_seq cache 1;

-- How far each reader of the journal is. A reader crosses organizations, so this table belongs to the installation.
create table journal_positions (
  reader text primary key
    constraint journal_positions_reader_form check (reader ~ '^[a-z][a-z0-9_]{0,62}$'),
  xid xid8 not null,
  seq bigint not null,
  updated_at timestamptz not null default now()
);
grant select, insert, update on journal_positions to voelgoed_app;

-- Every index is paid for by every fact: a seat's fact is 395 bytes of log with the two of the first migration, 540 with
-- the first of these, 672 with both. So the search gets only what cannot be had otherwise.
-- What happened to an event, to a seat of it: without it a search walks past the facts of every other event. New
-- entries of an event go to one place of the index, so its pages stay in memory.
-- squawk-ignore require-concurrent-index-creation
create index journal_by_event on journal (organization_id, event_id, recorded_at) where event_id is not null;
-- What somebody did: of somebody who did little, long ago, a search would otherwise walk the whole organization.
-- squawk-ignore require-concurrent-index-creation
create index journal_by_actor on journal (organization_id, actor_id, recorded_at) where actor_id is not null;
-- None by kind: a walk back along journal_by_organization finds common kinds soon, and a rare one is found by its event,
-- its actor or its days.
