"""The application of a web process: every route, behind the edge."""

import asyncio

from voelgoed.accounts.permissions import Action
from voelgoed.http import contract
from voelgoed.http.assets import Assets, load_bundle
from voelgoed.http.context import Context
from voelgoed.http.declared import all_routes, declare
from voelgoed.http.edge import Edge, Whole
from voelgoed.http.guard import Route, RouteTable, Rule
from voelgoed.http.routes.health import Readiometer
from voelgoed.wiring import Services


def create_app(services: Services, closing: asyncio.Event) -> Edge:
    """Everything that is served. `closing` is set when the process must end its streams."""
    app = declare()
    readiometer = Readiometer(services, closing)
    app.state.readiometer = readiometer
    routes = RouteTable([*all_routes(), contract_route()])
    return Edge(services, routes, declared=app, pages=Assets(load_bundle()), on_close=readiometer.close)


def contract_route() -> Route:
    """The contract, made once and served as it is."""
    whole = Whole(200, contract.text().encode(), ((b"cache-control", b"no-cache"),))

    async def read_contract(_: Context) -> Whole:
        return whole

    rule = Rule(action=Action.SEE_CONTRACT)
    return Route(method="GET", template="/api/openapi.json", rule=rule, hot=read_contract)
