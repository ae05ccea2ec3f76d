"""The application of a web process: every route, behind the edge."""

import asyncio
from collections.abc import Iterable

from voelgoed.accounts.permissions import Action
from voelgoed.demo.control import Control
from voelgoed.http import contract
from voelgoed.http.assets import Assets, load_bundle, marked_as_demo
from voelgoed.http.context import Context
from voelgoed.http.declared import all_routes, declare
from voelgoed.http.edge import Edge, Whole
from voelgoed.http.guard import Route, RouteTable, Rule
from voelgoed.http.routes.demo import Panel
from voelgoed.http.routes.health import Readiometer
from voelgoed.wiring import Services


def create_app(services: Services, closing: asyncio.Event, control: Control | None = None) -> Edge:
    """Everything that is served. `closing` is set when the process must end its streams.

    `control` is there in a demonstration only: then there are the routes of its panel, and its pages say so.
    """
    app = declare()
    readiometer = Readiometer(services, closing)
    app.state.readiometer = readiometer
    bundle = load_bundle()
    more: Iterable[Route] = ()
    if control:
        more, bundle = Panel(control, readiometer, closing).routes(), marked_as_demo(bundle)
    routes = RouteTable([*all_routes(), contract_route(), *more])
    return Edge(services, routes, declared=app, pages=Assets(bundle), on_close=readiometer.close)


def contract_route() -> Route:
    """The contract, made when somebody first asks for it: it takes longer than all else that a process begins with."""
    making, made = asyncio.Lock(), list[Whole]()

    async def read_contract(_: Context) -> Whole:
        async with making:  # whoever else asks meanwhile waits for the same one
            if not made:
                text = await asyncio.to_thread(contract.text)
                made.append(Whole(200, text.encode(), ((b"cache-control", b"no-cache"),)))
        return made[0]

    rule = Rule(action=Action.SEE_CONTRACT)
    return Route(method="GET", template="/api/openapi.json", rule=rule, hot=read_contract)
