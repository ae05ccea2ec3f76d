-- name: record
-- Add a fact to the caller's transaction.
insert into journal (organization_id, kind, event_id, actor_id, request_id, reason, data)
values ($1, $2, $3, $4, $5, $6, $7);

-- name: make_partitions
-- system: partitions belong to the installation.
select make_journal_partitions($1);
