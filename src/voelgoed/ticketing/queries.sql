-- name: lock_rulebook
-- Two rules that are made at once could both be the last that fits.
select pg_advisory_xact_lock(hashtextextended('voelgoed pricing rules ' || $1::uuid, 0));

-- name: count_rules
select count(*)
  from pricing_rules
 where organization_id = $1;

-- name: add_rule
insert into pricing_rules (id, organization_id, name, currency, amount_minor, by_category)
values ($2, $1, $3, $4, $5, $6)
returning id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at;

-- name: get_rule
select id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at
  from pricing_rules
 where organization_id = $1 and id = $2;

-- name: list_rules
select id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at
  from pricing_rules
 where organization_id = $1
   and ($2::uuid is null or id > $2)
 order by id
 limit $3;

-- name: find_rules
select id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at
  from pricing_rules
 where organization_id = $1 and id = any ($2::uuid[]);

-- name: share_rules
-- For whoever is about to name them: until then nobody deletes them or changes their currency. One order of locks.
select id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at
  from pricing_rules
 where organization_id = $1 and id = any ($2::uuid[])
 order by id
   for share;

-- name: lock_rule
select id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at
  from pricing_rules
 where organization_id = $1 and id = $2
   for update;

-- name: save_rule
update pricing_rules
   set name = $3, currency = $4, amount_minor = $5, by_category = $6, version = version + 1, updated_at = now()
 where organization_id = $1 and id = $2
returning id, organization_id, name, currency, amount_minor, by_category, version, created_at, updated_at;

-- name: remove_rule
delete from pricing_rules
 where organization_id = $1 and id = $2;

-- name: find_events_of_rule
-- The events that name a rule and are not over. Asked with the rule locked, after which no other can come to name it.
select e.id, e.name
  from event_layouts l
  join events e on e.organization_id = l.organization_id and e.id = l.event_id
 where l.organization_id = $1
   and e.status not in ('ended', 'cancelled', 'archived')
   and jsonb_path_exists(l.overrides, '$.pricing_zones.*.pricing_rule_id ? (@ == $rule)',
                         jsonb_build_object('rule', $2::uuid::text))
 order by e.id
 limit $3;
