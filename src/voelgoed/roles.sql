-- The three roles of an installation. Run once per cluster by a superuser; harmless to run again.
-- voelgoed_owner owns the tables and changes them. voelgoed_app is the login of every process and owns nothing.
-- voelgoed_registry has no login: it owns the functions that alone may write seats and holds.
do $$
begin
  if not exists (select from pg_roles where rolname = 'voelgoed_owner') then
    create role voelgoed_owner login;
  end if;
  if not exists (select from pg_roles where rolname = 'voelgoed_app') then
    create role voelgoed_app login;
  end if;
  if not exists (select from pg_roles where rolname = 'voelgoed_registry') then
    create role voelgoed_registry nologin;
  end if;
end
$$;

alter role voelgoed_owner nosuperuser nobypassrls nocreatedb nocreaterole;
alter role voelgoed_app nosuperuser nobypassrls nocreatedb nocreaterole;
alter role voelgoed_registry nosuperuser nobypassrls nocreatedb nocreaterole nologin;

-- The owner hands functions over to the registry, which needs membership; nobody else gets it.
grant voelgoed_registry to voelgoed_owner;

-- The last line of defence against a process that forgot about its transaction.
alter role voelgoed_app set statement_timeout = '30s';
alter role voelgoed_app set idle_in_transaction_session_timeout = '15s';
alter role voelgoed_app set lock_timeout = '2s';
