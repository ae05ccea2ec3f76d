"""What accounts refuse, most of it by the constraints of their tables."""

from voelgoed.errors import DomainError, Kind


class SlugTaken(DomainError):
    """Another organization has this address."""

    kind = Kind.CONFLICT
    code = "slug_taken"
    message = "Another organization already uses this address."


class SlugReserved(DomainError):
    """The address is one of the installation's own."""

    kind = Kind.INVALID
    code = "slug_reserved"
    message = "This address belongs to the installation itself: choose another one."


class OrganizationInvalid(DomainError):
    """The name or the address is not of the form that is allowed."""

    kind = Kind.INVALID
    code = "organization_invalid"
    message = "An address is 1 to 63 lower-case letters, digits and inner hyphens; a name is 1 to 200 characters."


class EmailTaken(DomainError):
    """Somebody has registered with this address."""

    kind = Kind.CONFLICT
    code = "email_taken"
    message = "There is an account with this e-mail address already: sign in instead."


class MembershipExists(DomainError):
    """The customer has this tier."""

    kind = Kind.CONFLICT
    code = "membership_exists"
    message = "This person has an active membership of this tier already."


class MembershipInvalid(DomainError):
    """The period ends before it begins."""

    kind = Kind.INVALID
    code = "membership_invalid"
    message = "A membership ends after it begins."
