-- The edges of an event's lifecycle, as in events/rules.py; a test compares the two.
create or replace function is_event_edge(status_from text, status_to text) returns boolean
language sql immutable parallel safe
as $$
  select (status_from, status_to) in (
    ('draft', 'published'), ('draft', 'archived'),
    ('published', 'live'), ('published', 'postponed'), ('published', 'cancelled'), ('published', 'draft'),
    ('live', 'ended'), ('live', 'postponed'), ('live', 'cancelled'),
    ('postponed', 'published'), ('postponed', 'live'), ('postponed', 'cancelled'),
    ('ended', 'archived'),
    ('cancelled', 'archived')
  )
$$;

-- The last word about a change of an event, whoever asks for it: it begins as a draft, walks along the edges only,
-- stays with its organization, counts every change, and is deleted only while it is a draft.
create or replace function guard_event() returns trigger
language plpgsql
set search_path = public, pg_temp
as $$
begin
  if tg_op = 'DELETE' then
    if old.status <> 'draft' then
      raise exception 'only a draft is deleted' using errcode = 'check_violation', constraint = 'events_drafts_only';
    end if;
    return old;
  end if;
  if tg_op = 'INSERT' then
    if new.status <> 'draft' or new.version <> 1 then
      raise exception 'an event begins as a draft, version 1' using errcode = 'check_violation', constraint = 'events_begin';
    end if;
    return new;
  end if;
  if new.status <> old.status and not is_event_edge(old.status, new.status) then
    raise exception 'an event does not go from % to %', old.status, new.status
      using errcode = 'check_violation', constraint = 'events_edges';
  end if;
  if new.version <> old.version + 1 then
    raise exception 'a change of an event raises its version by one'
      using errcode = 'check_violation', constraint = 'events_version';
  end if;
  if new.id <> old.id or new.organization_id <> old.organization_id or new.inserted_at <> old.inserted_at then
    raise exception 'an event stays what it is' using errcode = 'check_violation', constraint = 'events_identity';
  end if;
  return new;
end
$$;
