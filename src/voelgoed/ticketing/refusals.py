"""What pricing rules refuse."""

from voelgoed.errors import DomainError, Kind


class PricingRuleNotFound(DomainError):
    """There is no such rule here."""

    kind = Kind.MISSING
    code = "pricing_rule_not_found"
    message = "There is no such pricing rule."


class PricingRuleInvalid(DomainError):
    """Some of its fields cannot be what they are."""

    kind = Kind.INVALID
    code = "pricing_rule_invalid"
    message = "Some fields of the pricing rule are not of their form."


class PricingRuleChanged(DomainError):
    """Somebody else changed the rule since the caller looked."""

    kind = Kind.CONFLICT
    code = "pricing_rule_changed"
    message = "The pricing rule was changed in the meantime. Nothing was done: look again, then decide."


class PricingRuleInUse(DomainError):
    """Events that are still to come, or are on, name the rule."""

    kind = Kind.CONFLICT
    code = "pricing_rule_in_use"
    message = "Events use this pricing rule: it cannot be deleted, nor count in another currency."


class PricingRulesFull(DomainError):
    """The organization has as many rules as it may."""

    kind = Kind.CONFLICT
    code = "pricing_rules_full"
    message = "There are as many pricing rules as there may be: delete some that no event uses."
