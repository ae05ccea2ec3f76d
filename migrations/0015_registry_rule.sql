-- The registry has the rule that keeps organizations apart in words of its own: the same rule, worked out once a statement
-- and not for each row. Its functions write hundreds of rows in one statement, by plans that name their indexes. For everybody
-- else the rule stays as it was: of a value that is only known while a statement runs PostgreSQL cannot guess how many rows
-- have it, and `voelgoed verify` would walk where it should look up.
create or replace procedure keep_organizations_apart(kept regclass) language plpgsql as $$
begin
  execute format('alter table %s enable row level security', kept);
  execute format('alter table %s force row level security', kept);
  execute format(
    'create policy organization on %s to voelgoed_app, voelgoed_owner using ('
    'organization_id = nullif(current_setting(''app.organization_id'', true), '''')::uuid '
    'or current_setting(''app.scope'', true) = ''system'')', kept);
  execute format(
    'create policy registry on %s to voelgoed_registry using ('
    'organization_id = (select nullif(current_setting(''app.organization_id'', true), '''')::uuid) '
    'or (select current_setting(''app.scope'', true) = ''system''))', kept);
end
$$;

do $$
declare
  kept regclass;
begin
  for kept in select polrelid::regclass from pg_policy where polname = 'organization' order by polrelid loop
    execute format('drop policy organization on %s', kept);
    call keep_organizations_apart(kept);
  end loop;
end
$$;
