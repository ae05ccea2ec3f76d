-- The last word about a version: once it is whole nothing of it changes but its status, and that only forward.
create or replace function guard_layout_version() returns trigger
language plpgsql
set search_path = public, pg_temp
as $$
begin
  if old.geometry is null then
    return coalesce(new, old);
  end if;
  if tg_op = 'DELETE' then
    raise exception 'a version is kept' using errcode = 'check_violation', constraint = 'layout_versions_kept';
  end if;
  if (new.organization_id, new.layout_id, new.version, new.name, new.description, new.total_capacity, new.seat_count,
      new.shapes, new.geometry, new.geometry_etag, new.created_by, new.created_at) is distinct from
     (old.organization_id, old.layout_id, old.version, old.name, old.description, old.total_capacity, old.seat_count,
      old.shapes, old.geometry, old.geometry_etag, old.created_by, old.created_at) then
    raise exception 'a version does not change' using errcode = 'check_violation', constraint = 'layout_versions_immutable';
  end if;
  if new.status <> old.status
     and (old.status, new.status) not in (('draft', 'active'), ('draft', 'archived'), ('active', 'archived')) then
    raise exception 'a version does not go from % to %', old.status, new.status
      using errcode = 'check_violation', constraint = 'layout_versions_moves';
  end if;
  return new;
end
$$;

-- Nothing is added to a version that is whole.
create or replace function guard_whole_version() returns trigger
language plpgsql
set search_path = public, pg_temp
as $$
begin
  if exists (select from (select distinct layout_id, version from added) a
               join layout_versions v on v.layout_id = a.layout_id and v.version = a.version
              where v.geometry_etag is not null) then
    raise exception 'a version does not change' using errcode = 'check_violation', constraint = 'layout_versions_immutable';
  end if;
  return null;
end
$$;

-- A venue does not become smaller than a layout that can be chosen there.
create or replace function guard_venue_room() returns trigger
language plpgsql
set search_path = public, pg_temp
as $$
declare
  larger integer;
begin
  select max(v.total_capacity) into larger
    from layouts l
    join layout_versions v on v.layout_id = l.id and v.status <> 'archived'
   where l.organization_id = new.organization_id and l.venue_id = new.id;
  if larger > new.max_capacity then
    raise exception 'a layout of the venue has % places', larger
      using errcode = 'check_violation', constraint = 'venues_hold_their_layouts';
  end if;
  return new;
end
$$;

-- Remove what there is of a version that never became whole, and of a layout that never had one. The owner's right, lent
-- for this one purpose: the application may not delete anything of a layout.
create or replace function remove_unfinished_version(of_organization uuid, of_layout uuid, unfinished integer)
returns boolean
language plpgsql
security definer
set search_path = public, pg_temp
as $$
begin
  perform from layouts where organization_id = of_organization and id = of_layout for update;
  perform from layout_versions
    where organization_id = of_organization and layout_id = of_layout and version = unfinished
      and geometry_etag is not null;
  if found then
    return false;
  end if;
  delete from seats where organization_id = of_organization and layout_id = of_layout and version = unfinished;
  delete from seat_groups where organization_id = of_organization and layout_id = of_layout and version = unfinished;
  delete from layout_zones where organization_id = of_organization and layout_id = of_layout and version = unfinished;
  delete from layout_versions where organization_id = of_organization and layout_id = of_layout and version = unfinished;
  if not exists (select from layout_versions where organization_id = of_organization and layout_id = of_layout) then
    delete from layout_seats where organization_id = of_organization and layout_id = of_layout;
    delete from layouts where organization_id = of_organization and id = of_layout;
  end if;
  return true;
end
$$;
revoke all on function remove_unfinished_version(uuid, uuid, integer) from public;
grant execute on function remove_unfinished_version(uuid, uuid, integer) to voelgoed_app;
