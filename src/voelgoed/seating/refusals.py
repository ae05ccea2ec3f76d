"""What layouts refuse beside their faults."""

from voelgoed.errors import DomainError, Kind


class LayoutNotFound(DomainError):
    """There is no such layout here, or no such version of it."""

    kind = Kind.MISSING
    code = "layout_not_found"
    message = "There is no such layout, or no such version of it."


class LayoutMoveRefused(DomainError):
    """The version cannot become this from what it is."""

    kind = Kind.CONFLICT
    code = "layout_move_refused"
    message = "This version of the layout cannot do this from where it stands."


class SpecInvalid(DomainError):
    """Neither a preset nor a spec, or both."""

    kind = Kind.INVALID
    code = "layout_spec_invalid"
    message = "Give the name of a preset, or a spec; not both."


class PolicyInvalid(DomainError):
    """Some values are not what their fields take, or there are no such fields."""

    kind = Kind.INVALID
    code = "policy_invalid"
    message = "Some fields of the seating policy are not of their form. Nothing was changed."


class PolicyFieldLocked(DomainError):
    """The field is there to be changed, but not by this role."""

    kind = Kind.DENIED
    code = "policy_field_locked"
    message = "The platform has locked some of these fields of the seating policy. Nothing was changed."


class PolicyChanged(DomainError):
    """Somebody else changed the policy since the caller looked."""

    kind = Kind.CONFLICT
    code = "policy_changed"
    message = "The seating policy was changed in the meantime. Nothing was done: look again, then decide."


class LayoutNotActive(DomainError):
    """Events are given the version that is active, not a draft and not one of the past."""

    kind = Kind.CONFLICT
    code = "layout_not_active"
    message = "This version of the layout cannot be chosen: it is not the active one."


class LayoutOfOtherVenue(DomainError):
    """A hall stands where it stands: an event has a layout of its own venue."""

    kind = Kind.CONFLICT
    code = "layout_of_other_venue"
    message = "The layout belongs to another venue than the event."
