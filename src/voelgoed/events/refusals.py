"""What events, venues and gates refuse."""

from voelgoed.errors import DomainError, Kind


class EventNotFound(DomainError):
    """There is no such event here, or nobody who asks may know of it."""

    kind = Kind.MISSING
    code = "event_not_found"
    message = "There is no such event."


class VenueNotFound(DomainError):
    """There is no such venue here."""

    kind = Kind.MISSING
    code = "venue_not_found"
    message = "There is no such venue."


class GateNotFound(DomainError):
    """There is no such gate here."""

    kind = Kind.MISSING
    code = "gate_not_found"
    message = "There is no such gate."


class EventChanged(DomainError):
    """Somebody else changed the event since the caller looked."""

    kind = Kind.CONFLICT
    code = "event_changed"
    message = "The event was changed in the meantime. Nothing was done: look again, then decide."


class VenueChanged(DomainError):
    """Somebody else changed the venue since the caller looked."""

    kind = Kind.CONFLICT
    code = "venue_changed"
    message = "The venue was changed in the meantime. Nothing was done: look again, then decide."


class GateChanged(DomainError):
    """Somebody else changed the gate since the caller looked."""

    kind = Kind.CONFLICT
    code = "gate_changed"
    message = "The gate was changed in the meantime. Nothing was done: look again, then decide."


class EventMoveRefused(DomainError):
    """The lifecycle has no such step, or it cannot be taken now."""

    kind = Kind.CONFLICT
    code = "event_move_refused"
    message = "The event cannot do this from where it stands."


class EventTimesInvalid(DomainError):
    """The times do not fit together."""

    kind = Kind.INVALID
    code = "event_times_invalid"
    message = "These times do not fit together."


class CapacityExceeded(DomainError):
    """More people than the venue, or the event, has room for."""

    kind = Kind.CONFLICT
    code = "capacity_exceeded"
    message = "There is not room for so many."


class SettingsInvalid(DomainError):
    """A known setting has a value that makes no sense."""

    kind = Kind.INVALID
    code = "settings_invalid"
    message = "Some settings are not of their form."


class TimezoneUnknown(DomainError):
    """No such time zone."""

    kind = Kind.INVALID
    code = "timezone_unknown"
    message = "This is not a time zone: give a region's name, such as Africa/Johannesburg."


class EventSlugTaken(DomainError):
    """Another event of the organization has this address."""

    kind = Kind.CONFLICT
    code = "event_slug_taken"
    message = "Another event of yours already uses this address."


class VenueSlugTaken(DomainError):
    """Another venue of the organization has this address."""

    kind = Kind.CONFLICT
    code = "venue_slug_taken"
    message = "Another venue of yours already uses this address."


class GateCodeTaken(DomainError):
    """Another gate of the venue has this code."""

    kind = Kind.CONFLICT
    code = "gate_code_taken"
    message = "Another gate of this venue already has this code."


class EventInUse(DomainError):
    """Something refers to the event, or people have seen it: it stays, for the record."""

    kind = Kind.CONFLICT
    code = "event_in_use"
    message = "The event cannot be deleted any more: archive it instead."


class VenueInUse(DomainError):
    """Events refer to the venue."""

    kind = Kind.CONFLICT
    code = "venue_in_use"
    message = "The venue cannot be deleted: events take place there."


class FieldLocked(DomainError):
    """Nobody can change the field in this status."""

    kind = Kind.CONFLICT
    code = "field_locked"
    message = "Some of these fields cannot be changed in the event's status."


class FieldDenied(DomainError):
    """The field is there to be changed, but not by this role."""

    kind = Kind.DENIED
    code = "field_denied"
    message = "Some of these fields are not yours to change."


class ReasonNeeded(DomainError):
    """What people are affected by is not done without saying why."""

    kind = Kind.INVALID
    code = "reason_needed"
    message = "Say why: it stands in the journal."


class ConsentNeeded(DomainError):
    """A published event goes to another venue only when somebody says outright that they want it."""

    kind = Kind.CONFLICT
    code = "consent_needed"
    message = "People know of this event. Moving it to another venue needs your explicit consent."


class ReplacementInvalid(DomainError):
    """The event cannot be replaced by that one."""

    kind = Kind.INVALID
    code = "replacement_invalid"
    message = "The event cannot be replaced by that one."
