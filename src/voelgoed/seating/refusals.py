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
