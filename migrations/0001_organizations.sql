-- Organizations, and the rule that keeps their records apart.

revoke all on schema public from public;
grant usage on schema public to voelgoed_app, voelgoed_registry;

-- Put a table under the rule: a row is seen and written only by its own organization, named by the transaction, or by
-- work that crosses organizations and says so. Forced, so that not even the owner passes by accident.
create procedure keep_organizations_apart(kept regclass) language plpgsql as $$
begin
  execute format('alter table %s enable row level security', kept);
  execute format('alter table %s force row level security', kept);
  execute format(
    'create policy organization on %s using ('
    'organization_id = nullif(current_setting(''app.organization_id'', true), '''')::uuid '
    'or current_setting(''app.scope'', true) = ''system'')', kept);
end
$$;
revoke all on procedure keep_organizations_apart(regclass) from public;

create table organizations (
  id uuid primary key,
  slug text not null
    constraint organizations_slug_form check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  name text not null
    constraint organizations_name_length check (char_length(name) between 1 and 200),
  created_at timestamptz not null default now(),
  constraint organizations_slug_key unique (slug)
);
grant select, insert, update on organizations to voelgoed_app;
