"""Every time that a request may name, as the contract lists them, with values at and beyond their limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from tests.make.web import Site
from tests.security.test_matrix import CASES, World, enter
from voelgoed.db import Database
from voelgoed.http import contract
from voelgoed.http.shapes import MOMENT

Json = dict[str, Any]

FIRST, LAST = "1900-01-01T00:00:00Z", "2999-12-31T23:59:59.999999Z"
AT_THE_LIMIT = [FIRST, LAST, "1900-01-01T14:00:00+14:00", "2999-12-31T09:59:59.999999-14:00", f"{LAST[:-1]}999Z"]
"""Times as good as any other; whether a route wants them is its own business."""
BEYOND = [
    "1899-12-31T23:59:59.999999Z", "3000-01-01T00:00:00Z", "1900-01-01T13:59:59+14:00", "2999-12-31T10:00:00-14:00",
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z",
    "0001-01-01T13:59:59+14:00", "0001-01-01T00:00:00+00:01", "9999-12-31T10:00:00-14:00", "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:00-00:01", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "294277-01-01T00:00:00Z",
    "-0001-01-01T00:00:00Z", "-4713-01-01T00:00:00Z", "2027-03-12T23:59:60Z", "2027-03-12T24:00:00Z",
    "2027-02-29T00:00:00Z", "2027-03-12T00:00:00+24:00", "2027-03-12T00:00:00-99:99", "2027-03-12T00:00:00+00:60",
    "2027-03-12T00:00:00", "2027-03-12", "infinity", "-infinity", "now", "9" * 400, "1e300", "nan", "",
    "٢٠٢٧-03-12T00:00:00Z", "2027-03-12T00:00:00Z\x00",
]  # fmt: skip
SENSIBLE = {
    "start_at": "2031-05-01T18:00:00Z",
    "end_at": "2031-05-01T22:00:00Z",
    "sale_start_at": "2031-01-01T00:00:00Z",
    "sale_end_at": "2031-05-01T18:00:00Z",
}
NOT_TEXTS: list[object] = [0, -1, 2**63, 1.5, 1e308, True, [], {}]


@dataclass(slots=True)
class Asked:
    """The times that one route may be asked with."""

    method: str
    template: str
    query: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    schemas: list[Json] = field(default_factory=list)


def times_in(schema: Json, schemas: Json, path: str) -> Iterator[tuple[str, Json]]:
    """The path and the schema of every time in a schema."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if str(schema.get("format", "")).startswith(("date", "time")):
        yield path, schema
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from times_in(one, schemas, path)
    for name, one in schema.get("properties", {}).items():
        yield from times_in(one, schemas, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from times_in(schema[inner], schemas, f"{path}.{inner}")


def asked_by(method: str, template: str, operation: Json, schemas: Json) -> Asked:
    asked = Asked(method.upper(), template)
    for parameter in operation.get("parameters", ()):
        for path, schema in times_in(parameter["schema"], schemas, parameter["name"]):
            assert parameter["in"] == "query", f"{template}: no test knows how to send {path}"
            asked.query.append(path)
            asked.schemas.append(schema)
    content = operation.get("requestBody", {}).get("content", {})
    for kind, media in content.items():
        for path, schema in times_in(media["schema"], schemas, "body"):
            name = path.removeprefix("body.")
            assert (kind, "." in name) == ("application/json", False), f"{template}: no test knows how to send {path}"
            asked.body.append(name)
            asked.schemas.append(schema)
    return asked


def all_asked() -> list[Asked]:
    made = contract.document()
    found = (
        asked_by(method, template, operation, made["components"]["schemas"])
        for template, operations in made["paths"].items()
        for method, operation in operations.items()
    )
    return [one for one in found if one.schemas]


ROUTES = all_asked()
each_route = pytest.mark.parametrize("asked", ROUTES, ids=[f"{one.method} {one.template}" for one in ROUTES])


class Sender:
    """Asks one route as somebody who may, in a request that is valid but for its times."""

    def __init__(self, site: Site, asked: Asked, world: World, headers: dict[str, str]) -> None:
        self._site, self._asked, self._world = site, asked, world
        self._case = CASES[asked.method, asked.template]
        self._headers = {**headers, **self._case.headers}

    async def path(self) -> str:
        """The address of a new target."""
        case = self._case
        target = (await case.targets(self._world))["own"] if case.targets else ""
        return self._asked.template.replace(f"{{{case.parameter}}}", str(target))

    async def send(self, path: str, times: Json) -> httpx2.Response:
        query = {name: times[name] for name in self._asked.query if name in times}
        body = dict(self._case.body(self._world)) if self._case.body else {}
        body |= {name: times[name] for name in self._asked.body if name in times}
        return await self._site.client.request(
            self._asked.method, path, headers=self._headers, params=query, json=body if self._case.body else None
        )

    async def read_all(self) -> None:
        """Whatever was accepted can be shown."""
        for path in ("memberships", "api-keys", "events", "audit"):
            answer = await self._site.client.get(f"/api/admin/{path}", headers=self._headers)
            assert answer.status_code in (200, 403), path


async def sender_of(site: Site, db: Database, asked: Asked) -> Sender:
    world, headers, _ = await enter(db, "super_admin" if asked.template.startswith("/api/platform") else "owner")
    return Sender(site, asked, world, headers)


def test_the_contract_lists_times() -> None:
    """If this finds none, the tests below try nothing."""
    assert len(ROUTES) >= 10
    assert sum(len(one.schemas) for one in ROUTES) >= 28


@each_route
def test_every_time_of_a_request_is_a_moment(asked: Asked) -> None:
    """A plain `datetime` lets in what cannot be put into UTC: `http/shapes.py` has a type that does not."""
    assert {(one["format"], one.get("description")) for one in asked.schemas} == {("date-time", MOMENT)}


@each_route
async def test_times_beyond_the_limit_are_refused(site: Site, db: Database, asked: Asked) -> None:
    """400, the code of every invalid request, and the path of the field."""
    sender = await sender_of(site, db, asked)
    path = await sender.path()
    in_query = [(name, f"query.{name}", value) for name in asked.query for value in BEYOND]
    values: list[object] = [*BEYOND, *NOT_TEXTS]
    in_body = [(name, f"body.{name}", value) for name in asked.body for value in values]
    for name, place, value in (*in_query, *in_body):
        answer = await sender.send(path, {name: value})
        told = answer.json()
        assert (answer.status_code, told["error"], told["effect"]) == (400, "invalid_request", "none"), (name, value)
        assert {error["path"] for error in told["details"]["errors"]} == {place}, (name, value)


@each_route
async def test_times_at_the_limit_break_nothing(site: Site, db: Database, asked: Asked) -> None:
    """One at a time, one among sensible ones, and all of them: accepted or refused, never an error of ours."""
    sender = await sender_of(site, db, asked)
    names = [*asked.query, *asked.body]
    sensible = {name: SENSIBLE[name] for name in names if name in SENSIBLE}
    tried = [{**others, name: value} for others in ({}, sensible) for name in names for value in AT_THE_LIMIT]
    for first, second in ((FIRST, LAST), (LAST, FIRST), (FIRST, FIRST), (LAST, LAST)):
        tried.append({name: second if number % 2 else first for number, name in enumerate(names)})
    for times in tried:
        answer = await sender.send(await sender.path(), times)
        assert answer.status_code < 500, (times, answer.text)
    await sender.read_all()
