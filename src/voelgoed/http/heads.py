"""Headers as they come: a browser says the same ones with every request, so what was made of them is kept.

Most requests come whole, in one read, with headers that were read before. Such a one needs no parser: where it ends is
known from the headers, and what is left is one line. Everything else, and whatever a parser could understand in another
way, is the parser's.
"""

import re
from typing import Final, NamedTuple

from voelgoed.accounts.tokens import Shown
from voelgoed.recent import Recent

HEADS_MAX: Final = 2_000
"""Of each half: one takes 4.4 KB with a browser's headers, 9.5 KB at most, so all of them 18 MB, or 38."""
KEPT_BYTES_MAX: Final = 2_048
KEPT_PAIRS_MAX: Final = 32
LENGTH_DIGITS_MAX: Final = 6
METHODS: Final = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")}
REQUEST: Final = re.compile(rb"(" + b"|".join(METHODS) + rb") (/[A-Za-z0-9/_.~%?&=:,;+@-]*) HTTP/1\.1\r\n")
# Each line is looked at once, from its beginning: to look from everywhere would take seconds for some long ones.
LINE: Final = re.compile(rb"^([A-Za-z0-9-]+): ([!-~](?:[ -~]*[!-~])?)\r\n", re.MULTILINE)
OUT_OF_THE_ORDINARY: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect"})
"""What may change where a request ends, or what follows it."""


class Head:
    """The headers of a request. Whoever gets one leaves it as it is: the next request may have the same."""

    __slots__ = ("_shown", "headers", "pairs")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self.pairs = pairs
        self.headers: dict[bytes, bytes] = dict(pairs)  # of a header sent twice the last counts, for everybody alike
        self._shown: tuple[bytes, Shown | None] | None = None

    def shown(self, cookie: bytes) -> Shown | None:
        """The token that was shown, if one was; a browser shows it by the cookie of this name."""
        if self._shown is None or self._shown[0] != cookie:
            self._shown = cookie, self._look_for(cookie)
        return self._shown[1]

    def _look_for(self, cookie: bytes) -> Shown | None:
        """A bearer token wins over a cookie."""
        scheme, _, value = self.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and value:
            return Shown.read(value.strip(), is_cookie=False)
        for part in self.headers.get(b"cookie", b"").split(b";"):
            name, _, value = part.strip().partition(b"=")
            if name == cookie:
                return Shown.read(value, is_cookie=True)
        return None


class Plain(NamedTuple):
    """One whole request."""

    method: str
    target: bytes
    head: Head
    body: bytes


class Heads:
    """Those that were met of late, by their bytes, with how much follows them."""

    def __init__(self) -> None:
        self._recent = Recent[bytes, tuple[Head, int]](HEADS_MAX)

    def __len__(self) -> int:
        return len(self._recent)

    def read(self, data: bytes) -> Plain | None:
        """The request that this is, if it is one whole request, with nothing behind it, and nothing unusual in it."""
        asked = REQUEST.match(data)
        if asked is None:
            return None
        start = asked.end()
        end = data.find(b"\r\n\r\n", start - 2) + 2
        if end < start:
            return None
        lines = data[start:end]
        found = self._recent.get(lines) or self._read(lines)
        if found is None or found[1] != len(data) - end - 2:
            return None
        method, target = asked.groups()
        return Plain(METHODS[method], target, found[0], data[end + 2 :])

    def forget(self, now: float) -> None:
        """Forget those that nobody has sent for a minute or two: there are secrets in them."""
        self._recent.forget(now)

    def _read(self, lines: bytes) -> tuple[Head, int] | None:
        found = read_plainly(lines)
        if found is not None and len(lines) <= KEPT_BYTES_MAX and len(found[0].pairs) <= KEPT_PAIRS_MAX:
            self._recent.put(lines, found)
        return found


def read_plainly(lines: bytes) -> tuple[Head, int] | None:
    """Headers in the one spelling that clients use, of a request after which the line goes on; what follows them."""
    pairs = [(name.lower(), value) for name, value in LINE.findall(lines)]
    if sum(len(name) + len(value) + 4 for name, value in pairs) != len(lines):  # something lies between them
        return None
    lengths = [value for name, value in pairs if name == b"content-length"]
    for name, value in pairs:
        if name in OUT_OF_THE_ORDINARY or (name.endswith(b"connection") and value.lower() != b"keep-alive"):
            return None
    if not lengths:
        return Head(pairs), 0
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > LENGTH_DIGITS_MAX:
        return None
    return Head(pairs), int(lengths[0])
