"""What the edge must know of every route: which action it is, how much it takes, which refusals it can give.

A route without a rule cannot be built: `@guarded` is how an endpoint gets one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

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
    is_prompt: bool = False  # called with how it tells what came of it, and without a task


class Match(NamedTuple):
    """A route that fits, and the parts of the path that it leaves open."""

    route: Route
    parameters: Mapping[str, str]


class _Node:
    """A part of paths: what may follow it, fixed or open, and the routes that end here."""

    __slots__ = ("fixed", "methods", "names", "only", "open")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.open: list[tuple[str, _Node]] = []
        self.only: _Node | None = None  # what is open, when that is one thing and the whole of a part
        self.methods: dict[str, Route] = {}
        self.names: tuple[str, ...] = ()


class RouteTable:
    """Finds the route of a request by its path, part by part; a fixed part wins over an open one."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node = self._root
            names = []
            for part in route.template.strip("/").split("/"):
                fixed, is_open, name = part.partition("{")  # as in `v{version}`
                if is_open:
                    names.append(name[:-1])
                    known = next((child for prefix, child in node.open if prefix == fixed), None)
                    if known is None:
                        known = _Node()
                        node.open.append((fixed, known))
                        node.open.sort(key=lambda one: -len(one[0]))  # what says more is tried first
                        node.only = known if node.open == [("", known)] else None
                    node = known
                else:
                    node = node.fixed.setdefault(part, _Node())
            assert route.method not in node.methods, f"{route.method} {route.template} is there twice"
            assert node.names in ((), tuple(names)), f"{route.template} calls its parts otherwise than its neighbours"
            node.methods[route.method] = route
            node.names = tuple(names)

    def find(self, method: str, path: str) -> Match | frozenset[str] | None:
        """The route; or the methods that the path does have; or nothing."""
        parts = path[1:].split("/")
        found = _straight(self._root, parts) or _walk(self._root, parts, 0, ())
        if found is None:
            return None
        node, values = found
        route = node.methods.get(method)
        return Match(route, dict(zip(node.names, values))) if route else frozenset(node.methods)  # noqa: B905 - as many


def _straight(node: _Node, parts: Sequence[str]) -> tuple[_Node, Sequence[str]] | None:
    """Where a path leads at first sight, which is nearly always right: without a look back."""
    values: list[str] = []
    for part in parts:
        following = node.fixed.get(part)
        if following is None:
            following = node.only
            if following is None or not part:
                return None
            values.append(part)
        node = following
    return (node, values) if node.methods else None


def _walk(node: _Node, parts: Sequence[str], at: int, values: tuple[str, ...]) -> tuple[_Node, Sequence[str]] | None:
    """Where a path leads, and what its open parts are; a way that leads nowhere is given up for the next."""
    if at == len(parts):
        return (node, values) if node.methods else None
    part = parts[at]
    following = node.fixed.get(part)
    if following is not None and (found := _walk(following, parts, at + 1, values)) is not None:
        return found
    for prefix, child in node.open:
        if len(part) > len(prefix) and part.startswith(prefix):
            found = _walk(child, parts, at + 1, (*values, part[len(prefix) :]))
            if found is not None:
                return found
    return None
