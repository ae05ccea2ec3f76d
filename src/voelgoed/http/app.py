"""The application: every route, behind the edge."""

import asyncio

from fastapi import FastAPI
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from voelgoed.config import VERSION
from voelgoed.http.assets import Assets, load_bundle
from voelgoed.http.edge import Edge
from voelgoed.http.routes import health
from voelgoed.wiring import Services

DESCRIPTION = "Seat reservation and events: venues, layouts, live maps, holds, tickets and gates."


def declare() -> FastAPI:
    """The routes and their contract, without anything behind them."""
    app = FastAPI(
        title="VoelgoedEvents",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # both load their scripts from elsewhere, which our own policy forbids
        redoc_url=None,
    )
    app.include_router(health.router)
    return app


def create_app(services: Services, closing: asyncio.Event) -> ASGIApp:
    """The application of a web process. `closing` is set when it must end its streams."""
    app = declare()
    app.state.services = services
    app.state.closing = closing
    app.state.readiometer = health.Readiometer(services, closing)
    app.mount("/api", nothing_here)
    app.mount("/", Assets(load_bundle()))
    return Edge(app, is_https=services.settings.address.startswith("https://"))


async def nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer for every unknown address of the API; without this the web application's shell would."""
    body = {"error": "not_found", "message": "There is nothing at this address.", "details": {}, "effect": "none"}
    await JSONResponse(body, status_code=404)(scope, receive, send)
