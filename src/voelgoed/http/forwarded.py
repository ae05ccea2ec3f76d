"""Where a request comes from: the peer, or what our own proxies say in X-Forwarded-For."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from voelgoed.http.exchange import Exchange
from voelgoed.network import client_address, parse_address
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

WARN_EVERY_S: Final = 60.0
FORWARDED_FOR: Final = b"x-forwarded-for"


class Proxies:
    """The proxies in front of this process, as many as the operator says there are."""

    def __init__(self, trusted_count: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._trusted_count, self._clock = trusted_count, clock
        self._warned_at = float("-inf")

    def client_of(self, exchange: Exchange) -> str | None:
        """Return the client's address, or None where there is none, as on a unix socket."""
        if not self._trusted_count:
            if FORWARDED_FOR in exchange.headers or b"forwarded" in exchange.headers:
                self._warn()
            return parse_address(exchange.client or "")
        # A proxy may add a header of its own instead of extending the one it got: together they are one list.
        said = b",".join([value for name, value in exchange.head.pairs if name == FORWARDED_FOR])
        return client_address(exchange.client, said.decode("latin-1"), self._trusted_count)

    def _warn(self) -> None:
        """Count a header that is ignored, and log it at most once a minute.

        It may be a visitor's own invention. Behind a proxy that is not configured it means that all visitors share one
        address and one set of limits.
        """
        metrics.count(metrics.FORWARDED_IGNORED)
        now = self._clock()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            log.warning(
                "forwarded_header_ignored",
                reason="a request came with X-Forwarded-For or Forwarded, and no proxy is trusted",
                hint="behind a proxy all visitors now share one address and its limits: set VOELGOED_TRUSTED_PROXIES",
            )
