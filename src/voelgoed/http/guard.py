"""What the edge must know of every route: which action it is, how much it takes, which refusals it can give.

A route without a rule cannot be built: `@guarded` is how an endpoint gets one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from voelgoed.accounts.permissions import Action
from voelgoed.errors import DomainError

F = TypeVar("F", bound=Callable[..., Any])

BODY_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One route, as far as the edge is concerned."""

    action: Action
    errors: Sequence[type[DomainError]] = ()
    body_bytes_max: int = BODY_BYTES_MAX
    is_stream: bool = False
    body_wait_s: float | None = None  # longer than for most, where the body may be large


def guarded(
    action: Action,
    *errors: type[DomainError],
    body_bytes_max: int = BODY_BYTES_MAX,
    body_wait_s: float | None = None,
    is_stream: bool = False,
) -> Callable[[F], F]:
    """Give an endpoint its rule."""

    def mark(endpoint: F) -> F:
        RULES[endpoint] = Rule(
            action=action, errors=errors, body_bytes_max=body_bytes_max, is_stream=is_stream, body_wait_s=body_wait_s
        )
        return endpoint

    return mark


RULES: dict[Callable[..., Any], Rule] = {}
"""The rule of every endpoint, filled when the routes are imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path with its method, its rule, and for a hot route the endpoint that the edge calls itself."""

    method: str
    template: str
    rule: Rule
    hot: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A route that fits, and the parts of the path that it leaves open."""

    route: Route
    parameters: Mapping[str, str]


class RouteTable:
    """Finds the route of a request by its path: by number of parts, then part by part."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._by_length: dict[int, list[tuple[tuple[str, ...], dict[str, Route]]]] = {}
        for route in self.routes:
            parts = tuple(route.template.strip("/").split("/"))
            known = self._by_length.setdefault(len(parts), [])
            methods = next((methods for other, methods in known if other == parts), None)
            if methods is None:
                methods = {}
                known.append((parts, methods))
            assert route.method not in methods, f"{route.method} {route.template} is there twice"
            methods[route.method] = route
        for known in self._by_length.values():  # a fixed part wins over an open one
            known.sort(key=lambda entry: ["{" in part for part in entry[0]])

    def find(self, method: str, path: str) -> Match | frozenset[str] | None:
        """The route; or the methods that the path does have; or nothing."""
        parts = path[1:].split("/")
        for template, methods in self._by_length.get(len(parts), ()):
            parameters = _fit(template, parts)
            if parameters is None:
                continue
            route = methods.get(method)
            return Match(route, parameters) if route else frozenset(methods)
        return None


def _fit(template: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    """What the open parts are; None when a fixed one differs or an open one is empty."""
    parameters: dict[str, str] = {}
    for wanted, part in zip(template, parts, strict=True):
        fixed, is_open, name = wanted.partition("{")  # as in `v{version}`
        if is_open:
            if not part.startswith(fixed) or len(part) == len(fixed):
                return None
            parameters[name[:-1]] = part[len(fixed) :]
        elif wanted != part:
            return None
    return parameters
