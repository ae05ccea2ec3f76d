"""The HTTP contract as a document, with every refusal each route can give.

`python -m voelgoed.http.contract FOLDER` writes it there, and the tables of permissions and states into `docs`.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from voelgoed.accounts import permissions
from voelgoed.accounts.model import Role
from voelgoed.accounts.permissions import ALLOWED, PermissionDenied, Unauthorized
from voelgoed.errors import Busy, DomainError, OutcomeUnknown
from voelgoed.events import rules
from voelgoed.http.declared import all_routes, declare
from voelgoed.http.guard import Route
from voelgoed.http.hot import HOT, HotRoute
from voelgoed.http.problems import SAFE_METHODS, STATUS, BodyTooLarge, BodyTooSlow, CsrfFailed, RequestInvalid
from voelgoed.http.shapes import ProblemView

REF = "#/components/schemas/{name}"
PROBLEM = {"$ref": REF.format(name="Problem")}


def document() -> dict[str, Any]:
    """OpenAPI 3.1: declared and hot routes alike."""
    app = declare()
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # never sent: ours is the envelope below
        schemas.pop(name, None)
    schemas["Problem"] = TypeAdapter(ProblemView).json_schema()
    made["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A session's token, or an API key"},
        "cookie": {
            "type": "apiKey",
            "in": "cookie",
            "name": "vg_session",
            "description": "`__Host-vg_session` over TLS; with X-CSRF-Token on changes",
        },
    }
    for hot in HOT:
        made["paths"].setdefault(hot.path, {})[hot.method.lower()] = _hot_operation(hot, schemas)
    codes: set[str] = set()
    for route in all_routes():
        operation = made["paths"][route.template][route.method.lower()]
        operation["responses"].pop("422", None)
        refusals = list(_refusals(route, operation))
        codes |= {refusal.code for refusal in refusals}
        operation["responses"] |= _responses(refusals, operation["responses"])
        if Role.ANONYMOUS not in ALLOWED[route.rule.action]:
            operation["security"] = [{"bearer": []}, {"cookie": []}]
    schemas["Problem"]["properties"]["error"]["enum"] = sorted(
        codes | {"internal_error", "method_not_allowed", "not_found"}
    )
    return made


def text() -> str:
    """The document as a file, in an order that does not change between runs."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _refusals(route: Route, operation: Mapping[str, Any]) -> Iterable[type[DomainError]]:
    """What the edge and the route may refuse."""
    yield from route.rule.errors
    yield Busy
    allowed = ALLOWED[route.rule.action]
    if Role.ANONYMOUS not in allowed:
        yield Unauthorized
    if allowed != frozenset(Role):
        yield PermissionDenied
    if route.method not in SAFE_METHODS:
        yield from (BodyTooLarge, BodyTooSlow, OutcomeUnknown, CsrfFailed)
    if "parameters" in operation or "requestBody" in operation:
        yield RequestInvalid


def _responses(refusals: Iterable[type[DomainError]], there: Mapping[str, Any]) -> dict[str, Any]:
    by_status: dict[int, set[str]] = {}
    for refusal in refusals:
        by_status.setdefault(STATUS[refusal.kind], set()).add(refusal.code)
    return {
        str(status): {
            "description": ", ".join(f"`{code}`" for code in sorted(codes)),
            "content": {"application/json": {"schema": PROBLEM}},
        }
        for status, codes in sorted(by_status.items())
        if str(status) not in there
    }


def _hot_operation(hot: HotRoute, schemas: dict[str, Any]) -> dict[str, Any]:
    """A hot route as the document shows it; its shapes come from the very types that read and write it."""
    success: dict[str, Any] = {"description": "Successful Response"}
    if hot.answers:
        answer = TypeAdapter(hot.answers).json_schema(ref_template=REF.replace("{name}", "{model}"))
        schemas.update(answer.pop("$defs", {}))
        title = hot.answers.__name__.replace("[", "_").replace("]", "_")
        schemas[title] = answer
        success["content"] = {"application/json": {"schema": {"$ref": REF.format(name=title)}}}
    if hot.is_stream:
        success["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    operation: dict[str, Any] = {
        "tags": [hot.tag],
        "summary": hot.endpoint.__name__.replace("_", " ").capitalize(),
        "description": hot.endpoint.__doc__,
        "operationId": f"{hot.endpoint.__name__}_{hot.method.lower()}",
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
            for name in re.findall(r"{(\w+)}", hot.path)
        ]
        + [
            {"name": name, "in": "header", "required": False, "schema": dict(schema)}
            for name, schema in hot.headers.items()
        ],
        "responses": {str(status): success for status in (hot.status, *hot.also)},
    }
    if hot.asks:
        (schema,), parts = msgspec.json.schema_components([hot.asks], ref_template=REF)
        schemas.update(parts)
        operation["requestBody"] = {
            "required": not hot.is_body_optional,
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def main() -> None:
    """Write what is made from the code, where the repository keeps it."""
    root = Path(sys.argv[1])
    (root / "openapi.json").write_text(text())
    (root / "docs" / "permissions.md").write_text(permissions.document())
    (root / "docs" / "states" / "event.md").write_text(rules.document())


if __name__ == "__main__":
    main()
