"""The built web bundle, read into memory once and served compressed.

The build writes `.br` and `.gz` beside each text file, so that no request pays for compression.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

DIST = Path(__file__).with_name("dist")
INDEX = "index.html"
ENCODINGS = {"br": ".br", "gzip": ".gz"}  # in the order we prefer them
TYPES = {".webmanifest": "application/manifest+json", ".js": "text/javascript", ".svg": "image/svg+xml"}
BUNDLE_BYTES_MAX = 64 * 1024 * 1024

NOT_BUILT = (
    "The web pages are not built yet. From the repository run: make setup\n"
    "The API works without them; see /healthz and /api/openapi.json.\n"
)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file in every encoding it comes in; the empty encoding is the file as it is."""

    bodies: Mapping[str, bytes]
    media_type: str
    etag: str
    cache_control: str


def load_bundle(folder: Path = DIST) -> Mapping[str, Asset]:
    """Read every file of the bundle, by its path below the folder; empty when it has not been built."""
    bundle: dict[str, Asset] = {}
    size = 0
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        if not path.is_file() or path.suffix in ENCODINGS.values():
            continue
        bodies = {"": path.read_bytes()}
        for encoding, suffix in ENCODINGS.items():
            compressed = path.with_name(path.name + suffix)
            if compressed.exists():
                bodies[encoding] = compressed.read_bytes()
        size += sum(map(len, bodies.values()))
        assert size <= BUNDLE_BYTES_MAX, f"the bundle in {folder} is too large to keep in memory"
        name = path.relative_to(folder).as_posix()
        media_type = TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        is_hashed = name.startswith("assets/")  # the build puts a hash of the content into these names
        bundle[name] = Asset(
            bodies,
            f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type,
            _etag(bodies[""]),
            "public, max-age=31536000, immutable" if is_hashed else "no-cache",
        )
    return bundle


def marked_as_demo(bundle: Mapping[str, Asset]) -> Mapping[str, Asset]:
    """The same bundle, whose shell says that this is a demonstration; the pages then fetch its panel."""
    if INDEX not in bundle:
        return bundle
    shell = bundle[INDEX]
    body = shell.bodies[""].replace(b"<html", b"<html data-demo", 1)
    marked = replace(shell, bodies={"": body, "gzip": gzip.compress(body)}, etag=_etag(body))
    return {**bundle, INDEX: marked}


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:20]}"'


class Assets:
    """Serves the bundle; a path that names no file is a screen of the web application, and gets its shell."""

    def __init__(self, bundle: Mapping[str, Asset]) -> None:
        self._bundle = bundle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Method not allowed\n", status_code=405, headers={"allow": "GET, HEAD"})
        name = scope["path"].lstrip("/")
        is_file_name = "." in name.rsplit("/", 1)[-1]
        asset = self._bundle.get(name if is_file_name else INDEX)
        if asset is None:
            return PlainTextResponse("Not found\n", 404) if is_file_name else PlainTextResponse(NOT_BUILT, 503)
        asked = Headers(scope=scope)
        headers = {"etag": asset.etag, "cache-control": asset.cache_control, "vary": "accept-encoding"}
        if asset.etag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        encoding = pick_encoding(asked.get("accept-encoding", ""), asset.bodies)
        if encoding:
            headers["content-encoding"] = encoding
        return Response(asset.bodies[encoding], headers=headers, media_type=asset.media_type)


def pick_encoding(accepted: str, bodies: Mapping[str, bytes]) -> str:
    """The best encoding that both sides have; one refused with q=0 is not taken."""
    wanted = {}
    for part in accepted.split(","):
        name, _, parameters = part.strip().lower().partition(";")
        wanted[name.strip()] = parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((encoding for encoding in ENCODINGS if encoding in bodies and wanted.get(encoding)), "")
