-- name: add_organization
-- The slug is the organization's address, so the second one to ask for it is told, not merged.
insert into organizations (id, slug, name)
values ($1, $2, $3)
returning id, slug, name, created_at;

-- name: find_organization
select id, slug, name, created_at
  from organizations
 where slug = $1;
