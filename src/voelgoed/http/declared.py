"""The declared routes, and how they refuse; nothing behind them yet."""

from collections.abc import Iterator

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from voelgoed.config import VERSION
from voelgoed.errors import DomainError
from voelgoed.http import problems
from voelgoed.http.context import SCOPE_KEY
from voelgoed.http.guard import RULES, Route
from voelgoed.http.hot import HOT
from voelgoed.http.problems import AddressUnknown, Problem, RequestInvalid
from voelgoed.http.routes import (
    audit,
    auth,
    events,
    feed,
    health,
    holds,
    layouts,
    me,
    members,
    places,
    platform,
    pricing_rules,
    seating,
    seating_policy,
    storefronts,
    venues,
)

DESCRIPTION = "Seat reservation and events: venues, layouts, live maps, holds, tickets and gates."
ROUTERS = (
    health.router,
    storefronts.router,
    auth.router,
    me.router,
    members.router,
    venues.router,
    events.router,
    feed.router,
    layouts.router,
    pricing_rules.router,
    seating_policy.router,
    seating.router,
    holds.router,
    places.router,
    audit.router,
    platform.router,
)


def declare() -> FastAPI:
    """The declared routes, without anything behind them."""
    app = FastAPI(
        title="VoelgoedEvents",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url=None,  # the document is made in contract.py and served by a route of its own
        redirect_slashes=False,
        exception_handlers={
            DomainError: _refuse,
            RequestValidationError: _refuse,
            HTTPException: _refuse,
            Exception: _refuse,  # the framework raises it again afterwards, and the edge logs it
        },
    )
    for router in ROUTERS:
        app.include_router(router)
    return app


def all_routes() -> Iterator[Route]:
    """Every route with its rule; one that has none cannot be served."""
    for route in (route for router in ROUTERS for route in router.routes):
        assert isinstance(route, APIRoute), f"{route} is not declared as the others are"
        rule = RULES.get(route.endpoint)
        assert rule is not None, f"{route.path} has no @guarded rule"
        for method in route.methods or ():
            yield Route(method=method, template=route.path, rule=rule)
    for hot in HOT:
        yield Route(
            method=hot.method,
            template=hot.path,
            rule=RULES[hot.endpoint],
            hot=hot.endpoint,
            is_prompt=hot.is_prompt,
        )


async def _refuse(request: Request, raised: Exception) -> Response:
    """The refusals of declared routes, in the same words as everybody's."""
    problem = _problem_of(raised, request.method)
    body = problem.body(request.scope[SCOPE_KEY].call.request_id)
    return Response(body, problem.status, dict(problem.headers), media_type="application/json")


def _problem_of(raised: Exception, method: str) -> Problem:
    match raised:
        case DomainError():
            return problems.of_domain(raised)
        case RequestValidationError():
            return problems.of_validation(raised)
        case HTTPException(status_code=404):
            return problems.of_domain(AddressUnknown())
        case HTTPException():  # the framework's own: a body that could not be read as JSON
            return problems.of_domain(RequestInvalid())
        case _:
            return problems.of_crash(method)
