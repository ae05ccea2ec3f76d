"""What stands before every route, declared or raw: for now the headers that tell a browser what it may do."""

from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def security_headers(*, is_https: bool) -> Sequence[tuple[bytes, bytes]]:
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
    """The one ASGI middleware in front of everything."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        self._headers = security_headers(is_https=is_https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        await self._app(scope, receive, send_with_headers)
