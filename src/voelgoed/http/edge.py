"""What stands before every route, declared or hot: one ASGI middleware, one order.

Which route, who asks, may they, is it all there; then the route; then the same headers on every answer. So a hot route
refuses exactly as a declared one does, and nothing is read or validated for somebody who may not ask.
"""

import asyncio
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voelgoed.accounts import tokens
from voelgoed.accounts.model import ANONYMOUS, Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.errors import DomainError
from voelgoed.http import problems
from voelgoed.http.context import SCOPE_KEY, Context
from voelgoed.http.guard import Match, RouteTable, Rule
from voelgoed.http.problems import SAFE_METHODS, BodyTooLarge, BodyTooSlow, CsrfFailed, Problem
from voelgoed.ids import new_id
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

log = structlog.get_logger(__name__)

BODY_WAIT_S = 10.0
GAUGE_EVERY_S = 0.1
USER_AGENT_CHARS_MAX = 400
UNMATCHED = "(none)"
EXPOSED_HEADERS = b"etag, retry-after, x-request-id"
ALLOWED_HEADERS = b"authorization, content-type, idempotency-key, if-match, if-none-match, x-csrf-token, x-session"
PREFLIGHT_S = b"600"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
Headers = Sequence[tuple[bytes, bytes]]


def session_cookie_name(*, is_https: bool) -> str:
    """The prefix makes browsers refuse the cookie from a neighbouring host; they know it over TLS only."""
    return "__Host-vg_session" if is_https else "vg_session"


def security_headers(*, is_https: bool) -> Headers:
    """The same for every answer, so that none is forgotten."""
    headers = [
        (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(self), microphone=(), geolocation=()"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]
    if is_https:
        headers.append((b"strict-transport-security", b"max-age=31536000"))
    return headers


class Edge:
    """The front of the house."""

    def __init__(
        self,
        services: Services,
        routes: RouteTable,
        *,
        declared: ASGIApp,
        pages: ASGIApp,
        on_close: Callable[[], None],
    ) -> None:
        settings = services.settings
        self._services, self._routes, self._declared, self._pages = services, routes, declared, pages
        self._always = security_headers(is_https=settings.is_https)
        self._cookie = session_cookie_name(is_https=settings.is_https).encode()
        self._origins = frozenset(origin.encode() for origin in settings.cors_origins)
        self._proxies = settings.trusted_proxies
        self._reading: set[asyncio.Task[Any]] = set()
        self._is_closing = False
        self._on_close = on_close
        self.in_flight_count = 0
        self._gauge_at = 0.0

    def stop_reading(self) -> None:
        """Give up requests whose body has not come yet: nobody waits for them at the end."""
        self._is_closing = True
        for task in tuple(self._reading):
            task.cancel()

    def close(self) -> None:
        self._on_close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there is nothing else here: what the routes need was opened before them
        answer = Answer(scope, send, self._always, self._cors(scope))
        self._count_in_flight(1)
        structlog.contextvars.bind_contextvars(request_id=str(answer.request_id))
        try:
            await self._serve(scope, receive, answer)
        except DomainError as refused:
            await answer.refuse(problems.of_domain(refused))
        except msgspec.MsgspecError as wrong:
            await answer.refuse(problems.of_decoding(wrong))
        except ClientGone:
            pass
        except Exception:
            log.exception("request_failed", method=answer.method, route=answer.template)
            await answer.refuse(problems.of_crash(answer.method))
        finally:
            structlog.contextvars.unbind_contextvars("request_id", "organization_id", "actor_id")
            self._count_in_flight(-1)
            answer.observe()

    def _count_in_flight(self, change: int) -> None:
        """Count a request; the metric follows a few times a second, and when nobody is left."""
        self.in_flight_count += change
        now = time.monotonic()
        if now >= self._gauge_at or not self.in_flight_count:
            self._gauge_at = now + GAUGE_EVERY_S
            metrics.HTTP_IN_FLIGHT.set(self.in_flight_count)

    async def _serve(self, scope: Scope, receive: Receive, answer: "Answer") -> None:
        """Find the route, let it answer, or say why not."""
        path: str = scope["path"]
        if answer.is_preflight(scope):
            await answer.send_preflight()
            return
        # A HEAD is answered as its GET is, without the body.
        found = self._routes.find("GET" if answer.method == "HEAD" else answer.method, path)
        if found is None:
            if path == "/api" or path.startswith("/api/"):
                raise problems.AddressUnknown
            await self._pages(scope, receive, answer.pass_on)
            return
        if not isinstance(found, Match):
            await answer.refuse(problems.wrong_method(found | ({"HEAD"} if "GET" in found else set())))
            return
        answer.template = found.route.template
        context = await self._admit(scope, receive, found, answer)
        if found.route.hot:
            await answer.send_whole(await found.route.hot(context))
            return
        scope[SCOPE_KEY] = context
        if answer.method == "HEAD" and found.route.rule.is_stream:  # it would never end, and send nothing
            await answer.send_whole(Whole(200, b"", ((b"content-type", b"text/event-stream"),)))
            return
        if answer.method == "HEAD":
            scope["method"] = "GET"
        await self._declared(scope, _replay(context.body, receive), answer.pass_on)

    async def _admit(self, scope: Scope, receive: Receive, found: Match, answer: "Answer") -> Context:
        """Who asks, may they, and is the request all there: in this order."""
        headers = dict(scope["headers"])  # of a header sent twice the last counts, for everybody alike
        rule = found.route.rule
        token, is_cookie = _credential(headers, self._cookie)
        actor = (await self._services.sessions.find(token) if token else None) or ANONYMOUS
        if actor is not ANONYMOUS:
            structlog.contextvars.bind_contextvars(organization_id=str(actor.organization_id), actor_id=str(actor.id))
        require(actor, rule.action)
        csrf = tokens.csrf_token(token) if token and is_cookie and actor is not ANONYMOUS else None
        if csrf and answer.method not in SAFE_METHODS and rule.action is not Action.SIGN_IN:
            shown = headers.get(b"x-csrf-token", b"")
            if not hmac.compare_digest(shown, csrf.encode()):
                raise CsrfFailed
        return Context(
            services=self._services,
            call=Call(
                actor=actor,
                request_id=answer.request_id,
                ip=_client_ip(scope, headers, self._proxies),
                user_agent=headers.get(b"user-agent", b"").decode("latin-1")[:USER_AGENT_CHARS_MAX] or None,
            ),
            token=token,
            csrf_token=csrf,
            parameters=found.parameters,
            body=b"" if answer.method in SAFE_METHODS else await self._body(headers, receive, rule),
            headers=headers,
        )

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive, rule: Rule) -> bytes:
        """The whole body; given up when the process closes first."""
        task = asyncio.current_task()
        assert task is not None
        self._reading.add(task)
        try:
            return await _read_body(headers, receive, rule)
        except asyncio.CancelledError:
            if self._is_closing:
                raise ClientGone from None
            raise
        finally:
            self._reading.discard(task)

    def _cors(self, scope: Scope) -> Headers:
        """Which other site may read this answer: one that is listed, and by its exact name."""
        if not self._origins:
            return ()
        origin = next((value for name, value in scope["headers"] if name == b"origin"), b"")
        if origin not in self._origins:
            return ((b"vary", b"origin"),)
        return (
            (b"vary", b"origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-credentials", b"true"),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
        )


class ClientGone(Exception):
    """Whoever asked has left; there is nobody to answer."""


class Answer:
    """An answer on its way out: headers added once, the status remembered, a refusal sent only when nothing was yet."""

    def __init__(self, scope: Scope, send: Send, always: Headers, cors: Headers) -> None:
        self.request_id: UUID = new_id()
        self.method: str = scope["method"]
        self.template = UNMATCHED
        self._is_api = scope["path"].startswith("/api")
        self._send, self._always, self._cors = send, always, cors
        self._status: int | None = None
        self._began = time.perf_counter()

    async def pass_on(self, message: Message) -> None:
        """Send what a route sends, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._headers(message.get("headers", ()))]
        elif self.method == "HEAD":
            message = {**message, "body": b""}
        await self._send(message)

    async def send_whole(self, answer: "Whole") -> None:
        """Send a hot route's answer."""
        headers = [(b"content-length", b"%d" % len(answer.body)), *answer.headers]
        if not any(name == b"content-type" for name, _ in answer.headers):
            headers.append((b"content-type", b"application/json"))
        await self.pass_on({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self.pass_on({"type": "http.response.body", "body": answer.body})

    async def refuse(self, problem: Problem) -> None:
        """Send a refusal, unless an answer has begun: then it can only be cut off, which the server does."""
        if self._status is not None:
            return
        if problem.status in (401, 403):
            log.info("request_refused", route=self.template, code=problem.code)
        headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
        await self.send_whole(Whole(problem.status, problem.body(self.request_id), headers))

    def is_preflight(self, scope: Scope) -> bool:
        """Whether a browser asks beforehand, on behalf of another site."""
        return self.method == "OPTIONS" and any(
            name == b"access-control-request-method" for name, _ in scope["headers"]
        )

    async def send_preflight(self) -> None:
        """Say what the other site may send; a site that is not listed is told nothing."""
        allowed = [
            (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_S),
        ]
        is_listed = len(self._cors) > 1
        await self.pass_on({"type": "http.response.start", "status": 204, "headers": allowed if is_listed else []})
        await self.pass_on({"type": "http.response.body", "body": b""})

    def observe(self) -> None:
        """Count it. Who left without an answer counts as 499, as proxies do."""
        metrics.observe_http(
            method=self.method,
            route=self.template,
            status=self._status or 499,
            seconds=time.perf_counter() - self._began,
        )

    def _headers(self, sent: Headers) -> Headers:
        added = [(b"x-request-id", str(self.request_id).encode()), *self._always, *self._cors]
        if self._is_api and not any(name == b"cache-control" for name, _ in sent):
            added.append((b"cache-control", b"no-store"))
        return added


class Whole(msgspec.Struct, frozen=True):
    """What a hot route answers: status and the bytes of the body."""

    status: int
    body: bytes
    headers: Headers = ()


def _credential(headers: Mapping[bytes, bytes], cookie: bytes) -> tuple[str | None, bool]:
    """The token that was shown, and whether a browser sent it by itself. A bearer token wins over a cookie."""
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer" and value:
        return value.strip().decode("latin-1"), False
    for part in headers.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == cookie:
            return value.decode("latin-1"), True
    return None, False


def _client_ip(scope: Scope, headers: Mapping[bytes, bytes], proxies: int) -> str | None:
    """Where the request comes from: the peer, or what the outermost of our own proxies saw."""
    peer = scope["client"][0] if scope.get("client") else None
    if not proxies:
        return peer
    chain = [part.strip() for part in headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",") if part.strip()]
    return chain[-proxies] if len(chain) >= proxies else peer


async def _read_body(headers: Mapping[bytes, bytes], receive: Receive, rule: Rule) -> bytes:
    """The whole body, within its limits of size and time."""
    bytes_max = rule.body_bytes_max
    said = headers.get(b"content-length", b"0")
    if said == b"0" and b"transfer-encoding" not in headers:  # nothing will come
        return b""
    if said.isdigit() and int(said) > bytes_max:
        raise BodyTooLarge(bytes_max=bytes_max)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(rule.body_wait_s or BODY_WAIT_S):
            while True:  # ends with the body, its limit, or the time
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > bytes_max:
                    raise BodyTooLarge(bytes_max=bytes_max)
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise BodyTooSlow from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body again for the declared route; after it, whatever else comes."""
    is_sent = False

    async def replayed() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
