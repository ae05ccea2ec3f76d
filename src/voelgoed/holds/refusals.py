"""What the places of an event refuse."""

from voelgoed.errors import Busy, DomainError, Kind


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


class SeatNotFound(DomainError):
    """There is no such seat in this event."""

    kind = Kind.MISSING
    code = "seat_not_found"
    message = "There is no such seat in this event."


class ZoneNotFound(DomainError):
    """There is no such zone in this event where places are sold by number."""

    kind = Kind.MISSING
    code = "zone_not_found"
    message = "There is no such zone in this event, or one chooses a seat there."


class HoldNotFound(DomainError):
    """There is no such hold."""

    kind = Kind.MISSING
    code = "hold_not_found"
    message = "There is no such hold."


class SeatHeld(DomainError):
    """Somebody else holds the seat."""

    kind = Kind.CONFLICT
    code = "seat_held_by_another_user"
    message = "Somebody else holds this seat at the moment. Choose another one, or try again later."


class SeatNotAvailable(DomainError):
    """The seat is sold, or not on sale."""

    kind = Kind.CONFLICT
    code = "seat_not_available"
    message = "This seat cannot be had."


class SeatGone(DomainError):
    """Somebody was at the seat at the same moment and was first."""

    kind = Kind.CONFLICT
    code = "seat_no_longer_available"
    message = "Somebody else was faster. Choose another seat."


class ReservationFailed(Busy):
    """Races inside PostgreSQL, lost again and again; nothing was changed."""

    code = "seat_reservation_failed"
    message = "The seats could not be held, and nothing was changed. Please try again in a moment."


class SeatsRefused(DomainError):
    """Of seats asked for together some cannot be had, so none was held."""

    kind = Kind.CONFLICT
    code = "seats_refused"
    message = "Some of these seats cannot be had, so none was held."


class ZoneDenied(DomainError):
    """The zone is for members, or for some roles."""

    kind = Kind.DENIED
    code = "zone_access_denied"
    message = "This part of the venue is not open to everybody, and not to you."


class BlockFull(DomainError):
    """The zone has not so many places left."""

    kind = Kind.CONFLICT
    code = "block_at_capacity"
    message = "There are not so many places left here."


class SeatRateLimited(DomainError):
    """More seats in a few minutes than anybody needs, or more asks at once."""

    kind = Kind.LIMITED
    code = "rate_limited"
    message = "You have asked for many seats in a short time. Wait a little."


class TooManySeats(DomainError):
    """More than one booking may have."""

    kind = Kind.CONFLICT
    code = "max_seats_exceeded"
    message = "That is more than one booking may have."


class TooManyWheelchairs(DomainError):
    """More wheelchair spaces than one booking may have."""

    kind = Kind.CONFLICT
    code = "max_wheelchair_seats_exceeded"
    message = "That is more wheelchair spaces than one booking may have."


class TooManyHolds(DomainError):
    """More than one person or address may hold at a time."""

    kind = Kind.CONFLICT
    code = "max_holds_exceeded"
    message = "You hold as much as you may already."


class EventNotAvailable(DomainError):
    """The status of the event lets nothing be sold."""

    kind = Kind.INVALID
    code = "event_not_available"
    message = "Tickets for this event cannot be had at the moment."


class EventUnavailable(DomainError):
    """The event is cancelled, or over and put away."""

    kind = Kind.INVALID
    code = "event_unavailable"
    message = "This event is not sold any more."


class SalesClosed(DomainError):
    """It is not the time in which tickets are sold."""

    kind = Kind.INVALID
    code = "event_sales_closed"
    message = "The sale has not begun, or is over."


class NotHoldOwner(DomainError):
    """The hold is somebody else's."""

    kind = Kind.DENIED
    code = "not_hold_owner"
    message = "This hold is not yours."


class HoldsExpired(DomainError):
    """What was held has lapsed."""

    kind = Kind.CONFLICT
    code = "holds_expired"
    message = "Your hold has lapsed. Choose again."
