"""Who asks for places of an event at which too many do is turned away before anything is parsed.

A process that is asked for three times what it can sell has a few microseconds for each whom it cannot serve. To parse
such a request and to refuse it as any other takes as much again as the two system calls that cannot be spared.
"""

import re
from typing import Final

from voelgoed.holds.lane import Lanes
from voelgoed.http.heads import LENGTH_DIGITS_MAX
from voelgoed.ids import new_id
from voelgoed.telemetry import metrics

PLAIN_ASK: Final = re.compile(
    rb"POST /api/events/([0-9a-f-]{36})/(?:(?:seats|zones)/[0-9a-f-]{36}/reserve|holds) HTTP/1\.1\r\n"
    rb"((?:[A-Za-z-]+: [ -~]*\r\n)+)\r\n"
)
REFUSED_UNREAD: Final = metrics.HTTP_REQUESTS.labels("POST", metrics.UNMATCHED, "503")
"""Not among the durations: it took none."""


class Bouncer:
    """Looks at what comes where nothing else is asked."""

    def __init__(self, lanes: Lanes, refusal: bytes, *, is_cors: bool) -> None:
        self._lanes, self._refusal, self._is_cors = lanes, refusal, is_cors

    def turn_away(self, data: bytes) -> bytes | None:
        """The refusal, all of it but status and date; nothing when the request is to be read."""
        if not self._lanes.is_any_crowded():
            return None
        event_id = asked_plainly(data, is_cors=self._is_cors)
        if event_id is None or not self._lanes.is_crowded(event_id):
            return None
        metrics.count(metrics.LANE_SHED)
        metrics.count(REFUSED_UNREAD)
        request_id = str(new_id()).encode()
        return self._refusal % (request_id, request_id)


def asked_plainly(data: bytes, *, is_cors: bool) -> str | None:
    """The event whose places are asked for, when this is one whole request for that and nothing out of the ordinary.

    Whatever else it may be, and whatever a parser could understand in another way, is left to the parser.
    """
    asked = PLAIN_ASK.match(data)
    if asked is None:
        return None
    lines = b"\n" + asked[2].lower()
    # Four looks instead of a loop: this is done for each of ten thousand a second.
    if b"transfer-encoding" in lines or b"upgrade" in lines or b"expect" in lines or b"close" in lines:
        return None
    if is_cors and b"origin" in lines:
        return None
    length = 0
    if count := lines.count(b"content-length"):
        behind = lines.partition(b"\ncontent-length: ")[2]
        said = behind[: behind.find(b"\r")]
        if count > 1 or not said.isdigit() or len(said) > LENGTH_DIGITS_MAX:
            return None
        length = int(said)
    return asked[1].decode() if length == len(data) - asked.end() else None
