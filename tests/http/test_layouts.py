"""Layouts over HTTP: import, generate, compare, export, draw; all faults at once, and nothing stored with any."""

import asyncio
import gzip
import json
from typing import Any
from uuid import UUID

import pytest

from tests.make.accounts import Person, make_person
from tests.make.events import make_venue
from tests.make.layouts import SMALL, allow_everything, changed, encoded
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.events.model import Venue
from voelgoed.ids import new_id
from voelgoed.seating import geometry, presets
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import read_layout
from voelgoed.seating.faults import DOCUMENT_BYTES_MAX
from voelgoed.seating.generate import generate


@pytest.fixture
async def staff(db: Database) -> Person:
    person = await make_person(db, role=Role.STAFF)
    await allow_everything(db, person.organization.id)
    return person


@pytest.fixture
async def owner(db: Database, staff: Person) -> Person:
    return await make_person(db, staff.organization, Role.OWNER)


@pytest.fixture
async def venue(db: Database, staff: Person) -> Venue:
    return await make_venue(db, staff.organization, max_capacity=1_000)


async def imported(site: Site, person: Person, venue: Venue, document: object = SMALL) -> dict[str, Any]:
    answer = await site.client.post(
        f"/api/admin/venues/{venue.id}/layouts", headers=person.headers, content=encoded(document)
    )
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def counts(db: Database, person: Person) -> dict[str, int]:
    """How much there is of layouts and facts."""
    async with db.transaction(person.organization.id) as conn:
        return {
            table: await conn.fetchval(
                f"select count(*) from {table} where organization_id = $1", person.organization.id
            )
            for table in (
                "layouts",
                "layout_versions",
                "layout_seats",
                "layout_zones",
                "seats",
                "seat_groups",
                "journal",
            )
        }


@pytest.mark.req("LAY-10", "LAY-12", "SEAT-01", "SEAT-04")
async def test_an_import_is_there_with_zones_seats_and_a_drawing(
    site: Site, staff: Person, venue: Venue, db: Database
) -> None:
    """What was sent can be listed, looked at zone by zone, and drawn seat by seat."""
    made = await imported(site, staff, venue)
    assert (made["seat_count"], made["total_capacity"]) == (13, 313)
    version = made["version"]
    assert (version["version"], version["status"], version["created_by"]) == (1, "draft", str(staff.user_id))
    assert version["created_at"] <= version["updated_at"]
    listed = (await site.client.get("/api/admin/layouts", headers=staff.headers)).json()["data"]
    assert [(one["id"], one["venue_id"], one["latest_version"], one["active_version"]) for one in listed] == [
        (version["layout_id"], str(venue.id), 1, None)
    ]
    at = f"/api/admin/layouts/{version['layout_id']}/versions/1"
    detail = (await site.client.get(at, headers=staff.headers)).json()["data"]
    assert [(zone["code"], zone["zone_type"], zone["capacity"], zone["access_mode"]) for zone in detail["zones"]] == [
        ("S", "reserved_seating", 10, "public"),
        ("V", "vip_reserved", 3, "membership_tier"),
        ("P", "ga_standing", 300, "public"),
    ]
    drawn = geometry.decode((await site.client.get(version["geometry_url"], headers=staff.headers)).content)
    assert [str(zone.zone_id) for zone in drawn.zones] == [zone["zone_id"] for zone in detail["zones"]]
    async with db.transaction(staff.organization.id) as conn:
        rows = await conn.fetch("select ordinal, seat_id, x, y, category from seats order by ordinal")
    assert len(rows) == len(drawn.serials) == 13
    assert [(row["x"], row["y"]) for row in rows] == list(zip(drawn.x, drawn.y, strict=True))
    assert all(isinstance(row["seat_id"], UUID) for row in rows)


@pytest.mark.req("LAY-16")
async def test_all_faults_are_told_and_nothing_is_stored(site: Site, db: Database, staff: Person, venue: Venue) -> None:
    """Five faults, five errors, each with its place; for a new layout and for a new version of one."""
    broken = changed(
        {
            "zones.0.rows.0.seats.0.x": "left",
            "zones.0.focal_point": [1],
            "zones.1.membership_tier": 7,
            "zones.2.capacity": -1,
            "surprise": True,
        }
    )
    made = await imported(site, staff, venue)
    before = await counts(db, staff)
    for path in (
        f"/api/admin/venues/{venue.id}/layouts",
        f"/api/admin/layouts/{made['version']['layout_id']}/versions",
    ):
        for query in ("", "?dry_run=true"):
            answer = await site.client.post(path + query, headers=staff.headers, content=encoded(broken))
            assert (answer.status_code, answer.json()["error"], answer.json()["effect"]) == (
                400,
                "layout_invalid",
                "none",
            )
            errors = answer.json()["details"]["errors"]
            assert len(errors) == answer.json()["details"]["error_count"] == 5, errors
            assert all(error[part] for error in errors for part in ("path", "code", "message", "hint"))
            assert "zones[0].rows[0].seats[0].x" in {error["path"] for error in errors}
    assert await counts(db, staff) == before


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'"x"', b"{}", b"[" * 100_000])
async def test_what_is_no_document_is_refused(
    site: Site, db: Database, staff: Person, venue: Venue, body: bytes
) -> None:
    before = await counts(db, staff)
    answer = await site.client.post(f"/api/admin/venues/{venue.id}/layouts", headers=staff.headers, content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "layout_invalid")
    assert await counts(db, staff) == before


async def test_a_dry_run_checks_and_stores_nothing(site: Site, db: Database, staff: Person, venue: Venue) -> None:
    """Also whether the venue has room."""
    before = await counts(db, staff)
    path = f"/api/admin/venues/{venue.id}/layouts?dry_run=true"
    answer = await site.client.post(path, headers=staff.headers, content=encoded(SMALL))
    assert answer.status_code == 200
    assert (answer.json()["data"]["version"], answer.json()["data"]["seat_count"]) == (None, 13)
    large = changed({"zones.2.capacity": 1_000})
    answer = await site.client.post(path, headers=staff.headers, content=encoded(large))
    assert (answer.status_code, answer.json()["error"]) == (409, "capacity_exceeded")
    generated = f"/api/admin/venues/{venue.id}/layouts/generate?dry_run=true"
    answer = await site.client.post(generated, headers=staff.headers, json={"preset": "theatre-350"})
    assert (answer.status_code, answer.json()["data"]["seat_count"]) == (200, 350)
    assert await counts(db, staff) == before


async def test_more_than_32_megabytes_are_refused(site: Site, db: Database, staff: Person, venue: Venue) -> None:
    """By the announced length alone, before a byte of it is sent."""
    before = await counts(db, staff)
    host, _, port = site.address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [
        f"POST /api/admin/venues/{venue.id}/layouts HTTP/1.1",
        f"host: {host}",
        f"authorization: {staff.headers['authorization']}",
        f"content-length: {DOCUMENT_BYTES_MAX + 1}",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in answer
    assert await counts(db, staff) == before


async def test_a_large_document_within_the_limit_is_taken(site: Site, staff: Person, venue: Venue) -> None:
    """More than other routes take."""
    body = encoded(SMALL) + b" " * (1 << 20)
    answer = await site.client.post(f"/api/admin/venues/{venue.id}/layouts", headers=staff.headers, content=body)
    assert answer.status_code == 201


async def test_an_export_imports_as_the_same(site: Site, staff: Person, venue: Venue) -> None:
    """The document and the sheet of seats: a new version of either has no difference."""
    made = await imported(site, staff, venue)
    at = f"/api/admin/layouts/{made['version']['layout_id']}"
    exported = await site.client.get(f"{at}/versions/1/export", headers=staff.headers)
    assert read_layout(exported.content) == read_layout(encoded(SMALL))
    assert exported.content == write_layout(read_layout(encoded(SMALL)))
    assert exported.headers["content-disposition"].startswith('attachment; filename="layout-')
    sheet = await site.client.get(f"{at}/versions/1/export?format=csv", headers=staff.headers)
    assert sheet.headers["content-type"].startswith("text/csv")
    for number, (query, body) in enumerate((("", exported.content), ("?format=csv", sheet.content)), start=2):
        added = await site.client.post(f"{at}/versions{query}", headers=staff.headers, content=body)
        assert added.json()["data"]["version"]["version"] == number
        diff = (await site.client.get(f"{at}/diff?from=1&to={number}", headers=staff.headers)).json()["data"]
        assert not any(part["count"] if isinstance(part, dict) else part for part in diff.values()), diff


async def test_what_is_different_is_told(site: Site, staff: Person, venue: Venue) -> None:
    """Added, removed, moved, relabelled; zones that came, went or changed."""
    made = await imported(site, staff, venue)
    at = f"/api/admin/layouts/{made['version']['layout_id']}"
    document = json.loads((await site.client.get(f"{at}/versions/1/export", headers=staff.headers)).content)
    stalls = document["zones"][0]
    rows = stalls["rows"]
    rows[0]["seats"] |= {"x": [51, 100, 150, 200], "label": ["1a", "2", "3", "4"]}
    document["zones"][2]["code"] = "PIT"
    stalls["name"] = "The stalls"
    added = await site.client.post(f"{at}/versions", headers=staff.headers, content=encoded(document))
    assert added.status_code == 201, added.text
    diff = (await site.client.get(f"{at}/diff?from=1&to=2", headers=staff.headers)).json()["data"]
    assert [one["before"]["seat_code"] for one in diff["moved"]["seats"]] == ["S-A-1"]
    change = diff["relabelled"]["seats"][0]
    assert (change["before"]["label"], change["after"]["label"]) == ("1", "1a")
    assert (diff["zones_added"], diff["zones_removed"]) == (["PIT"], ["P"])
    assert diff["zones_changed"] == [{"zone_code": "S", "fields": ["name"]}]


@pytest.mark.parametrize("name", ["theatre-350", "festival"])
async def test_presets_are_generated_as_they_are_drawn(site: Site, db: Database, staff: Person, name: str) -> None:
    """The preview and what is stored are the same hall."""
    venue = await make_venue(db, staff.organization, max_capacity=2_000)
    answer = await site.client.post(
        f"/api/admin/venues/{venue.id}/layouts/generate", headers=staff.headers, json={"preset": name}
    )
    assert answer.status_code == 201
    stored = geometry.decode(
        (await site.client.get(answer.json()["data"]["version"]["geometry_url"], headers=staff.headers)).content
    )
    shown = geometry.decode(
        (await site.client.post("/api/admin/layouts/preview", headers=staff.headers, json={"preset": name})).content
    )
    assert (shown.x, shown.y, shown.labels) == (stored.x, stored.y, stored.labels)
    assert len(shown.x) == generate(presets.preset(name)).seat_count


async def test_a_spec_of_ones_own(site: Site, staff: Person, venue: Venue) -> None:
    """Every fault of it is told, with its path in the spec."""
    spec = {
        "name": "My hall",
        "blocks": [
            {"kind": "rows", "code": "A", "name": "Floor", "rows": 3, "seats": 8, "segments": [1, 1]},
            {
                "kind": "tables",
                "code": "T",
                "name": "Tables",
                "tables": 2,
                "seats_per_table": 4,
                "tables_per_rank": 2,
                "distance": 2000,
            },
            {"kind": "area", "code": "L", "name": "Lawn", "capacity": 100},
        ],
    }
    path = f"/api/admin/venues/{venue.id}/layouts/generate"
    answer = await site.client.post(path, headers=staff.headers, json={"spec": spec})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["data"]["seat_count"], answer.json()["data"]["total_capacity"]) == (32, 132)
    broken = {**spec, "blocks": [{**spec["blocks"][0], "first_row": 0, "seat_pitch": 0}]}  # type: ignore[dict-item]
    answer = await site.client.post(path, headers=staff.headers, json={"spec": broken})
    assert (answer.status_code, answer.json()["error"]) == (400, "layout_invalid")
    assert {"blocks[0].first_row", "blocks[0].seat_pitch"} <= {
        error["path"] for error in answer.json()["details"]["errors"]
    }
    for wrong in (
        {"description": "a\0b"},
        {"shapes": [{"kind": "bar", "label": "B", "outline": [[0, 0], [1, 0], [1, 1]]}] * 201},
    ):
        answer = await site.client.post(path, headers=staff.headers, json={"spec": {**spec, **wrong}})
        assert (answer.status_code, answer.json()["error"]) == (400, "layout_invalid")
    named = await site.client.post(
        f"{path}?dry_run=true", headers=staff.headers, json={"preset": "theatre-350", "name": "Saal"}
    )
    assert named.json()["data"]["name"] == "Saal"
    for body in ({}, {"preset": "nothing"}, {"preset": "festival", "spec": spec}):
        answer = await site.client.post(path, headers=staff.headers, json=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "layout_spec_invalid")


async def test_a_drawing_is_immutable_and_compressed_once(
    site: Site, db: Database, staff: Person, venue: Venue
) -> None:
    """The stored bytes to everybody; nothing to whoever has them; plain to whoever cannot unpack."""
    url = (await imported(site, staff, venue))["version"]["geometry_url"]
    headers = staff.headers | {"accept-encoding": "gzip"}
    async with site.client.stream("GET", url, headers=headers) as answer:
        sent = b"".join([part async for part in answer.aiter_raw()])
    async with db.transaction(staff.organization.id) as conn:
        assert sent == await conn.fetchval("select geometry from layout_versions")
    packed = await site.client.get(url, headers=headers)
    assert packed.headers["content-encoding"] == "gzip"
    assert "immutable" in packed.headers["cache-control"]
    plain = await site.client.get(url, headers=staff.headers | {"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == packed.content
    assert gzip.decompress(sent) == plain.content
    again = await site.client.get(url, headers=staff.headers | {"if-none-match": packed.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for other in (url.replace("/v1/", "/v2/"), url.replace("/v1/", "/w1/"), url.replace("/v1/", "/v/")):
        assert (await site.client.get(other, headers=staff.headers)).status_code == 404


async def test_a_version_is_moved_by_those_who_lead(site: Site, staff: Person, owner: Person, venue: Venue) -> None:
    """Staff prepare, leaders decide; a second activation archives the first, and there is no way back."""
    made = await imported(site, staff, venue)
    at = f"/api/admin/layouts/{made['version']['layout_id']}/versions"
    await site.client.post(at, headers=staff.headers, content=encoded(SMALL))
    assert (await site.client.post(f"{at}/1/activate", headers=staff.headers, json={})).status_code == 403
    for number in (1, 2):
        moved = await site.client.post(f"{at}/{number}/activate", headers=owner.headers, json={"reason": "ready"})
        assert moved.json()["data"]["status"] == "active"
        assert moved.json()["data"]["updated_at"] > moved.json()["data"]["created_at"]
    listed = (await site.client.get(at, headers=staff.headers)).json()["data"]
    assert [(one["version"], one["status"]) for one in listed] == [(2, "active"), (1, "archived")]
    again = await site.client.post(f"{at}/1/activate", headers=owner.headers, json={})
    assert (again.status_code, again.json()["error"]) == (409, "layout_move_refused")
    archived = await site.client.post(f"{at}/2/archive", headers=owner.headers, json={})
    assert archived.json()["data"]["status"] == "archived"


async def test_versions_come_in_pages(site: Site, staff: Person, venue: Venue) -> None:
    made = await imported(site, staff, venue)
    at = f"/api/admin/layouts/{made['version']['layout_id']}/versions"
    for _ in range(2):
        await site.client.post(at, headers=staff.headers, content=encoded(SMALL))
    first = (await site.client.get(f"{at}?limit=2", headers=staff.headers)).json()
    second = (await site.client.get(f"{at}?limit=2&cursor={first['next_cursor']}", headers=staff.headers)).json()
    assert [one["version"] for one in first["data"] + second["data"]] == [3, 2, 1]
    assert second["next_cursor"] is None
    assert (await site.client.get(f"{at}?cursor=AAAAAAAA", headers=staff.headers)).json()["error"] == "cursor_invalid"


async def test_the_same_key_makes_one_version(site: Site, db: Database, staff: Person, venue: Venue) -> None:
    """An answer that was lost is asked for again; another document with the key is refused."""
    path = f"/api/admin/venues/{venue.id}/layouts"
    headers = staff.headers | {"idempotency-key": "once"}
    answers = [await site.client.post(path, headers=headers, content=encoded(SMALL)) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert (await counts(db, staff))["layout_versions"] == 1
    other = await site.client.post(path, headers=headers, content=encoded(changed({"name": "Other"})))
    assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")


async def test_the_same_key_at_once_leaves_one_layout(site: Site, db: Database, staff: Person, venue: Venue) -> None:
    """One is made; the others are told to ask again, and then get that one."""
    path = f"/api/admin/venues/{venue.id}/layouts"
    headers = staff.headers | {"idempotency-key": "at-once"}
    asks = [site.client.post(path, headers=headers, content=encoded(SMALL)) for _ in range(5)]
    codes = [answer.status_code for answer in await asyncio.gather(*asks)]
    assert codes.count(201) >= 1
    assert set(codes) <= {201, 503}
    found = await counts(db, staff)
    assert (found["layouts"], found["layout_versions"], found["layout_seats"]) == (1, 1, 13)
    assert (await site.client.post(path, headers=headers, content=encoded(SMALL))).status_code == 201


async def test_the_same_sheet_with_the_same_key_is_answered_the_same(site: Site, staff: Person, venue: Venue) -> None:
    """Although the layout has gone on meanwhile, and the sheet would not fit it any more."""
    made = await imported(site, staff, venue)
    at = f"/api/admin/layouts/{made['version']['layout_id']}/versions"
    sheet = (await site.client.get(f"{at}/1/export?format=csv", headers=staff.headers)).content
    headers = staff.headers | {"idempotency-key": "sheet"}
    first = await site.client.post(f"{at}?format=csv", headers=headers, content=sheet)
    hall = write_layout(generate(presets.preset("theatre-350")))
    assert (await site.client.post(at, headers=staff.headers, content=hall)).status_code == 201
    again = await site.client.post(f"{at}?format=csv", headers=headers, content=sheet)
    assert (first.status_code, again.json()) == (201, first.json())


@pytest.mark.parametrize(("number", "status"), [(20_000, 400), (9_999, 201)])
async def test_a_sheet_stays_within_what_can_be_stored(
    site: Site, staff: Person, venue: Venue, number: int, status: int
) -> None:
    """Positions that are made of numbers have the limits of positions."""
    made = await imported(site, staff, venue)
    sheet = f"zone,row,number,x,y\r\nS,A,1,0,0\r\nS,A,{number},100,0\r\n"
    at = f"/api/admin/layouts/{made['version']['layout_id']}/versions"
    answer = await site.client.post(f"{at}?format=csv", headers=staff.headers, content=sheet.encode())
    assert answer.status_code == status, answer.text


async def test_odd_and_even_numbers_count_from_the_middle(
    site: Site, db: Database, staff: Person, venue: Venue
) -> None:
    """5 3 1 2 4 from the left, when the sheet says so."""
    made = await imported(site, staff, venue)
    lines = [f"S,A,{number},{x},0" for number, x in ((5, 0), (3, 50), (1, 100), (2, 150), (4, 200))]
    sheet = "\r\n".join(["zone,row,number,x,y", *lines, ""]).encode()
    at = f"/api/admin/layouts/{made['version']['layout_id']}/versions?format=csv&numbering=odd_even"
    answer = await site.client.post(at, headers=staff.headers, content=sheet)
    assert answer.status_code == 201, answer.text
    async with db.transaction(staff.organization.id) as conn:
        rows = await conn.fetch("select number from seats where version = 2 order by ordinal")
    assert [row["number"] for row in rows] == [5, 3, 1, 2, 4]


async def test_a_sheet_needs_a_layout_to_belong_to(site: Site, staff: Person) -> None:
    answer = await site.client.post(
        f"/api/admin/layouts/{new_id()}/versions?format=csv", headers=staff.headers, content=b"seat_code\r\n"
    )
    assert (answer.status_code, answer.json()["error"]) == (404, "layout_not_found")


async def test_the_schema_is_there_for_everybody(site: Site) -> None:
    schema = (await site.client.get("/api/schemas/layout.json")).json()
    assert schema["properties"]["format"]["const"] == "voelgoed-layout/1"
