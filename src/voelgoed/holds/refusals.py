"""What the places of an event refuse."""

from voelgoed.errors import DomainError, Kind


class SeatingInUse(DomainError):
    """Somebody holds or has bought what the change would take away."""

    kind = Kind.CONFLICT
    code = "seating_in_use"
    message = "People hold or have bought places that this would take away. Nothing was changed."


class SeatingChanged(DomainError):
    """Somebody else changed the event's seating since the caller looked."""

    kind = Kind.CONFLICT
    code = "seating_changed"
    message = "The seating of the event was changed in the meantime. Nothing was done: look again, then decide."


class SeatingLocked(DomainError):
    """An event that is over, or will not take place, keeps the seating it had."""

    kind = Kind.CONFLICT
    code = "seating_locked"
    message = "The seating of the event cannot be changed any more."
