"""What stands before every route, declared or hot: one entrance, one order.

Which route, who asks, may they, is it all there; then the route; then the same headers on every answer. So a hot route
refuses exactly as a declared one does, and nothing is read or validated for somebody who may not ask.
"""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

import msgspec
import structlog
from starlette.types import ASGIApp, Message, Receive

from voelgoed.accounts.model import ANONYMOUS, Actor, Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.accounts.sessions import Reading
from voelgoed.accounts.tokens import Shown
from voelgoed.errors import Busy, DomainError
from voelgoed.http import problems
from voelgoed.http.bouncer import Bouncer
from voelgoed.http.context import SCOPE_KEY, Context
from voelgoed.http.exchange import ClientGone, Exchange, Pairs
from voelgoed.http.forwarded import Proxies
from voelgoed.http.guard import Match, RouteTable, Rule
from voelgoed.http.problems import SAFE_METHODS, BodyTooLarge, BodyTooSlow, CsrfFailed, Problem
from voelgoed.ids import new_id, read_id
from voelgoed.telemetry import log as logs, metrics
from voelgoed.wiring import Services

log = structlog.get_logger(__name__)

BODY_WAIT_S = 10.0
GAUGE_EVERY_S = 0.1
USER_AGENT_CHARS_MAX = 400
WHOLE_KEPT = 1_000
RESERVING = ("/reserve", "/holds")
EVENT_STREAM = (b"content-type", b"text/event-stream")
EXPOSED_HEADERS = b"etag, retry-after, x-request-id"
ALLOWED_HEADERS = b"authorization, content-type, idempotency-key, if-match, if-none-match, x-csrf-token, x-session"
PREFLIGHT_S = b"600"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def session_cookie_name(*, is_https: bool) -> str:
    """The prefix makes browsers refuse the cookie from a neighbouring host; they know it over TLS only."""
    return "__Host-vg_session" if is_https else "vg_session"


def security_headers(*, is_https: bool) -> Pairs:
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
        self._always = _lines(security_headers(is_https=settings.is_https))
        self._cookie = session_cookie_name(is_https=settings.is_https).encode()
        self._origins = frozenset(origin.encode() for origin in settings.cors_origins)
        self._proxies = Proxies(settings.trusted_proxies)
        self._reading: set[asyncio.Task[Any]] = set()
        self._is_closing = False
        self._on_close = on_close
        self.in_flight_count = 0
        self._gauge_at = 0.0
        refusal = _refusal_of_crowd(self._always, ((b"vary", b"origin"),) if self._origins else ())
        self.turn_away = Bouncer(services.lanes, refusal, is_cors=bool(self._origins)).turn_away

    def stop_reading(self) -> None:
        """Give up requests whose body has not come yet: nobody waits for them at the end."""
        self._is_closing = True
        for task in tuple(self._reading):
            task.cancel()

    def close(self) -> None:
        self._on_close()

    def take(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Begin to answer a request: what is left to do for that, or nothing when the answer will come by itself.

        Most of what a sale asks waits in one place only, of somebody who is known: that needs no task.
        """
        answer = Answer(exchange, self._always, self._cors(exchange))
        if self._is_turned_away(exchange):
            self._count_in_flight(1)
            metrics.LANE_SHED.inc()  # before anybody is looked up: to refuse must cost less than to serve
            asyncio.get_running_loop().call_soon(self._finish, answer, Busy())
            return None
        # A HEAD is answered as its GET is, without the body.
        found = self._routes.find("GET" if answer.method == "HEAD" else answer.method, exchange.path)
        if isinstance(found, Match) and found.route.is_prompt and self._begin(exchange, found, answer):
            return None
        return self._serve(exchange, found, answer)

    def _is_turned_away(self, exchange: Exchange) -> bool:
        """Whether somebody asks for places of an event at which too many do."""
        if not self._services.lanes.is_any_crowded():
            return False
        if exchange.method != "POST" or not exchange.path.endswith(RESERVING):
            return False
        try:  # whichever way it is spelled
            event_id = str(read_id(exchange.path.removeprefix("/api/events/").partition("/")[0]))
        except ValueError:
            return False
        return self._services.lanes.is_crowded(event_id)

    def _begin(self, exchange: Exchange, found: Match, answer: "Answer") -> bool:
        """Begin with what needs no task, and ends in `_finish` whatever becomes of it; whether that can be."""
        if not exchange.is_complete or b"upgrade" in exchange.headers:
            return False
        shown = exchange.head.shown(self._cookie)
        self._count_in_flight(1)
        answer.template = found.route.template
        try:
            seen = self._services.sessions.seek(shown) if shown else None
        except Exception as failed:  # noqa: BLE001 - told, whatever it is
            asyncio.get_running_loop().call_soon(self._finish, answer, failed)
            return True
        if isinstance(seen, asyncio.Future):
            seen.add_done_callback(partial(self._when_read, exchange, found, answer, shown))
        else:
            self._go_on(exchange, found, answer, seen or ANONYMOUS, shown)
        return True

    def _when_read(
        self, exchange: Exchange, found: Match, answer: "Answer", shown: Shown | None, read: Reading
    ) -> None:
        """It is known now who asks: for whoever is still there."""
        failed = Busy() if read.cancelled() else read.exception()
        if not exchange.is_open:
            self._finish(answer, ClientGone())
        elif failed is not None:
            self._finish(answer, failed if isinstance(failed, Exception) else Busy())
        else:
            actor = self._services.sessions.used(read.result()) or ANONYMOUS
            self._go_on(exchange, found, answer, actor, shown)

    def _go_on(self, exchange: Exchange, found: Match, answer: "Answer", actor: Actor, shown: Shown | None) -> None:
        """Let the route begin, and answer when it tells."""

        def tell(said: Whole | Exception) -> None:
            self._finish(answer, said)

        route = found.route
        answer.actor = actor
        try:
            csrf = self._check(exchange, route.rule, actor, shown)
            body = _limited(exchange.whole_body() or b"", route.rule)
            context = self._context(exchange, found, answer, actor, shown, csrf, body)
            assert route.hot is not None, "a prompt route is a hot one"
            route.hot(context, tell)
        except Exception as failed:  # noqa: BLE001 - told, whatever it is
            asyncio.get_running_loop().call_soon(tell, failed)

    def _finish(self, answer: "Answer", said: "Whole | Exception | None") -> None:
        """Say what came of a request, and count it."""
        try:
            if isinstance(said, Whole):
                answer.send_whole(said)
            elif said is not None and not isinstance(said, ClientGone):
                answer.refuse(_problem_of(said, answer))
        except Exception:
            log.exception("answer_failed", route=answer.template, **answer.asked_by())
        finally:
            self._count_in_flight(-1)
            answer.end()

    async def _serve(self, exchange: Exchange, found: Match | frozenset[str] | None, answer: "Answer") -> None:
        """Answer a request, whatever becomes of it."""
        self._count_in_flight(1)
        logs.follow(answer.request_id)
        said: Whole | Exception | None = None
        try:
            said = await self._said(exchange, found, answer)
        except Exception as failed:  # noqa: BLE001 - told, whatever it is
            said = failed
        finally:
            self._finish(answer, said)
            del said  # a failure knows this frame: the two would keep each other, with the whole request

    def _count_in_flight(self, change: int) -> None:
        """Count a request; the metric follows a few times a second, and when nobody is left."""
        self.in_flight_count += change
        now = time.monotonic()
        if now >= self._gauge_at or not self.in_flight_count:
            self._gauge_at = now + GAUGE_EVERY_S
            metrics.HTTP_IN_FLIGHT.set(self.in_flight_count)

    async def _said(self, exchange: Exchange, found: Match | frozenset[str] | None, answer: "Answer") -> "Whole | None":
        """What there is to say, as far as it is not said by the way: by the route, or why there is none."""
        path = exchange.path
        if answer.is_preflight():
            answer.send_preflight()
        elif isinstance(found, Match):
            return await self._routed(exchange, found, answer)
        elif found is not None:
            answer.refuse(problems.wrong_method(found | ({"HEAD"} if "GET" in found else set())))
        elif path == "/api" or path.startswith("/api/"):
            raise problems.AddressUnknown
        else:
            await self._pages(exchange.scope(), exchange.receive, answer.pass_on)
        return None

    async def _routed(self, exchange: Exchange, found: Match, answer: "Answer") -> "Whole | None":
        route = found.route
        answer.template = route.template
        context = await self._admit(exchange, found, answer)
        if not exchange.is_open:  # the client has gone meanwhile: nothing is begun for it
            raise ClientGone
        if route.hot is None:
            if answer.method == "HEAD" and route.rule.is_stream:  # it would never end, and send nothing
                return STREAM_HEAD
            scope = exchange.scope()
            scope[SCOPE_KEY] = context
            if answer.method == "HEAD":
                scope["method"] = "GET"
            await self._declared(scope, _replay(context.body, exchange.receive), answer.pass_on)
            return None
        said: Whole | Stream = await (_told(route.hot, context) if route.is_prompt else route.hot(context))
        if isinstance(said, Whole):
            return said
        if answer.method == "HEAD":
            if said.require:
                await said.require()
            return STREAM_HEAD
        await said.run(exchange, answer.begin_stream)
        return None

    async def _admit(self, exchange: Exchange, found: Match, answer: "Answer") -> Context:
        """Who asks, may they, and is the request all there: in this order."""
        rule = found.route.rule
        shown = exchange.head.shown(self._cookie)
        actor = (await self._services.sessions.find_shown(shown) if shown else None) or ANONYMOUS
        answer.actor = actor
        if actor is not ANONYMOUS:
            logs.follow(answer.request_id, actor.organization_id, actor.id)
        csrf = self._check(exchange, rule, actor, shown)
        body = b"" if answer.method in SAFE_METHODS else await self._body(exchange, rule)
        return self._context(exchange, found, answer, actor, shown, csrf, body)

    def _check(self, exchange: Exchange, rule: Rule, actor: Actor, shown: Shown | None) -> str | None:
        """Whether they may, and whether it was their own page that asked: what such a page must show."""
        require(actor, rule.action)
        csrf = shown.csrf if shown and shown.is_cookie and actor is not ANONYMOUS else None
        if csrf and exchange.method not in SAFE_METHODS and rule.action is not Action.SIGN_IN:
            proof = exchange.headers.get(b"x-csrf-token", b"")
            if not hmac.compare_digest(proof, csrf.encode()):
                raise CsrfFailed
        return csrf

    def _context(
        self,
        exchange: Exchange,
        found: Match,
        answer: "Answer",
        actor: Actor,
        shown: Shown | None,
        csrf: str | None,
        body: bytes,
    ) -> Context:
        headers = exchange.headers
        return Context(
            services=self._services,
            call=Call(
                actor=actor,
                request_id=answer.request_id,
                ip=self._proxies.client_of(exchange),
                user_agent=headers.get(b"user-agent", b"").decode("latin-1")[:USER_AGENT_CHARS_MAX] or None,
            ),
            token=shown.token if shown else None,
            csrf_token=csrf,
            parameters=found.parameters,
            body=body,
            headers=headers,
        )

    async def _body(self, exchange: Exchange, rule: Rule) -> bytes:
        """The whole body; given up when the process closes first."""
        here = exchange.whole_body()
        if here is not None:
            return _limited(here, rule)
        task = asyncio.current_task()
        assert task is not None
        self._reading.add(task)
        try:
            return await _read_body(exchange, rule)
        except asyncio.CancelledError:
            if self._is_closing:
                raise ClientGone from None
            raise
        finally:
            self._reading.discard(task)

    def _cors(self, exchange: Exchange) -> Pairs:
        """Which other site may read this answer: one that is listed, and by its exact name."""
        if not self._origins:
            return ()
        origin = exchange.headers.get(b"origin", b"")
        if origin not in self._origins:
            return ((b"vary", b"origin"),)
        return (
            (b"vary", b"origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-credentials", b"true"),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
        )


class Answer:
    """An answer on its way out: headers added once, the status remembered, a refusal sent only when nothing was yet."""

    __slots__ = (
        "_always", "_began", "_cors", "_exchange", "_is_api", "_status", "actor", "method", "request_id", "template",
    )  # fmt: skip

    def __init__(self, exchange: Exchange, always: bytes, cors: Pairs) -> None:
        self._exchange, self._always, self._cors = exchange, always, cors
        self.request_id: UUID = new_id()
        self.method = exchange.method
        self.template = metrics.UNMATCHED
        self.actor = ANONYMOUS
        self._is_api = exchange.path.startswith("/api")
        self._status: int | None = None
        self._began = time.perf_counter()

    async def pass_on(self, message: Message) -> None:
        """Send what a route sends, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._exchange.begin(message["status"], message.get("headers", ()), self._added(message.get("headers", ())))
            return
        await self._exchange.send(message)

    def send_whole(self, answer: "Whole") -> None:
        """Send a hot route's answer."""
        if not self._exchange.is_open:
            return
        self._status = answer.status
        lines = _whole_lines(tuple(answer.headers), is_api=self._is_api)
        self._exchange.answer(answer.status, lines + self._always_added(), answer.body)

    def begin_stream(self) -> None:
        """Send the headers of an answer that goes on; what it says is written to the exchange."""
        self._status = 200
        given = (EVENT_STREAM, (b"x-accel-buffering", b"no"))
        self._exchange.begin(200, given, self._added(given))

    def refuse(self, problem: Problem) -> None:
        """Send a refusal, unless an answer has begun: then it can only be cut off, which the server does."""
        if self._status is not None:
            return
        if problem.status in (401, 403):
            log.info("request_refused", route=self.template, code=problem.code, **self.asked_by())
        if problem.is_last:
            self._exchange.keep_alive = False
        headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
        self.send_whole(Whole(problem.status, problem.body(self.request_id), headers))

    def asked_by(self) -> dict[str, str]:
        """Whose request it is, for a line of the log: what has no task has no context that would say so."""
        known = {
            "request_id": self.request_id,
            "organization_id": self.actor.organization_id,
            "actor_id": self.actor.id,
        }
        return {name: str(value) for name, value in known.items() if value is not None}

    def is_preflight(self) -> bool:
        """Whether a browser asks beforehand, on behalf of another site."""
        return self.method == "OPTIONS" and b"access-control-request-method" in self._exchange.headers

    def send_preflight(self) -> None:
        """Say what the other site may send; a site that is not listed is told nothing."""
        allowed = (
            (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_S),
        )
        self._status = 204
        is_listed = len(self._cors) > 1
        self._exchange.answer(204, _lines(allowed if is_listed else ()) + self._added(()), b"")

    def end(self) -> None:
        """Cut off what was not brought to its end, and count it. Who left without an answer counts as 499."""
        if not self._exchange.is_done:
            self._exchange.cut_off()
        metrics.observe_http(
            method=self.method,
            route=self.template,
            status=self._status or 499,
            seconds=time.perf_counter() - self._began,
        )

    def _added(self, given: Iterable[tuple[bytes, bytes]]) -> bytes:
        """What every answer has besides its own headers, as lines."""
        added = self._always_added()
        if self._is_api and not any(name == b"cache-control" for name, _ in given):
            added += b"cache-control: no-store\r\n"
        return added

    def _always_added(self) -> bytes:
        added = b"x-request-id: %b\r\n%b" % (str(self.request_id).encode(), self._always)
        return added + _lines(self._cors) if self._cors else added


class Whole(msgspec.Struct, frozen=True):
    """What a hot route answers: status and the bytes of the body."""

    status: int
    body: bytes
    headers: Pairs = ()


STREAM_HEAD = Whole(200, b"", (EVENT_STREAM,))


@lru_cache(WHOLE_KEPT)
def _whole_lines(given: tuple[tuple[bytes, bytes], ...], *, is_api: bool) -> bytes:
    """The headers of an answer that is JSON unless it says otherwise; most answers have the same ones."""
    names = {name for name, _ in given}
    lines = _lines(given)
    if b"content-type" not in names:
        lines += b"content-type: application/json\r\n"
    if is_api and b"cache-control" not in names:
        lines += b"cache-control: no-store\r\n"
    return lines


class Stream(msgspec.Struct, frozen=True):
    """What a hot route answers that goes on: run with the exchange, and with what begins the answer."""

    run: Callable[[Exchange, Callable[[], None]], Awaitable[None]]
    require: Callable[[], Awaitable[object]] | None = None
    """What `run` finds out before it begins, for who only asks whether it would."""


Tell = Callable[[Whole | Exception], None]
"""How a route that has no task says what came of it: an answer, or why there is none."""


async def _told(begin: Callable[[Context, Tell], None], context: Context) -> Whole:
    """What a route says that has no task, for one that has."""
    heard: list[Whole | Exception] = []
    arrived = asyncio.get_running_loop().create_future()

    def tell(said: Whole | Exception) -> None:
        if not arrived.done():
            heard.append(said)
            arrived.set_result(None)

    begin(context, tell)
    await arrived
    said = heard.pop()
    try:
        if isinstance(said, Exception):
            raise said
        return said
    finally:
        del said  # as in `_serve`


def _problem_of(failed: Exception, answer: Answer) -> Problem:
    """What is said of a failure to whoever asked."""
    if isinstance(failed, DomainError):
        return problems.of_domain(failed)
    if isinstance(failed, msgspec.MsgspecError):
        return problems.of_decoding(failed)
    log.error("request_failed", method=answer.method, route=answer.template, exc_info=failed, **answer.asked_by())
    return problems.of_crash(answer.method)


def _refusal_of_crowd(always: bytes, cors: Pairs) -> bytes:
    """All of it but status and date, with two gaps for the number of the request."""
    busy, gap = problems.of_domain(Busy()), UUID(int=0)
    body = busy.body(gap)
    given = tuple((name.encode(), value.encode()) for name, value in busy.headers.items())
    lines = _whole_lines(given, is_api=True) + b"x-request-id: %b\r\n" % str(gap).encode() + always + _lines(cors)
    whole = lines + b"content-length: %d\r\n\r\n" % len(body) + body
    return whole.replace(b"%", b"%%").replace(str(gap).encode(), b"%b")


def _limited(body: bytes, rule: Rule) -> bytes:
    if len(body) > rule.body_bytes_max:
        raise BodyTooLarge(bytes_max=rule.body_bytes_max)
    return body


def _lines(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in pairs)


async def _read_body(exchange: Exchange, rule: Rule) -> bytes:
    """The rest of a body, within its limits of size and time."""
    bytes_max = rule.body_bytes_max
    said = exchange.headers.get(b"content-length", b"0")
    if said.isdigit() and int(said) > bytes_max:
        raise BodyTooLarge(bytes_max=bytes_max)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(rule.body_wait_s or BODY_WAIT_S):
            while True:  # ends with the body, its limit, or the time
                message = await exchange.receive()
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
