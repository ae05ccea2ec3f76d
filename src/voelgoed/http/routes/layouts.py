"""Layouts of venues: import, generate, compare, export; and the geometry that browsers draw."""

import gzip
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from voelgoed.accounts.idempotency import IdempotencyKeyReused
from voelgoed.accounts.permissions import Action
from voelgoed.events.model import Status
from voelgoed.events.refusals import CapacityExceeded, VenueNotFound
from voelgoed.http.context import Caller, Context, IdempotencyKey, once
from voelgoed.http.guard import guarded
from voelgoed.http.routes.events import OrderBody
from voelgoed.http.routes.venues import JsonObject
from voelgoed.http.shapes import LIMIT, SOME_TEXT, Body, Cursor, Data, Limit, Listed, View
from voelgoed.paging import CursorInvalid
from voelgoed.seating import presets, usecases
from voelgoed.seating.diff import LayoutDiff, PlacedSeat, SeatChange, ZoneChange
from voelgoed.seating.document_schema import json_schema
from voelgoed.seating.faults import DOCUMENT_BYTES_MAX, LayoutInvalid, LayoutTooLarge
from voelgoed.seating.generate import generate
from voelgoed.seating.model import AccessMode, Layout, LayoutId, Version, VersionStatus, Zone, ZoneType
from voelgoed.seating.refusals import LayoutMoveRefused, LayoutNotFound, SpecInvalid
from voelgoed.seating.spec import Spec
from voelgoed.seating.usecases import Format, Stored

router = APIRouter(prefix="/api", tags=["layouts"])

UPLOAD_WAIT_S = 120.0
SEATS_SHOWN_MAX = 200
Number = Annotated[int, Path(ge=1, le=1_000_000)]
DryRun = Annotated[bool, Query(description="Check everything, store nothing.")]
PRESET_NAMES = tuple(presets.PRESETS)
DOCUMENT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A layout document (GET /api/schemas/layout.json), at most 32 MB",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
SHEET_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A layout document, or with `format=csv` the sheet of its seats, at most 32 MB",
        "content": {"application/json": {"schema": {"type": "object"}}, "text/csv": {"schema": {"type": "string"}}},
    }
}
IMPORT_ERRORS = (LayoutInvalid, LayoutTooLarge, CapacityExceeded, IdempotencyKeyReused, LayoutNotFound)


class LayoutView(View):
    """A layout through all its versions: which can be chosen, and which is the latest."""

    id: UUID
    venue_id: UUID
    name: str
    latest_version: int
    active_version: int | None
    created_at: datetime
    updated_at: datetime


class VersionView(View):
    """A version of a layout. Nothing of it changes but its status."""

    layout_id: UUID
    version: int
    status: VersionStatus
    name: str
    description: str | None
    total_capacity: int
    seat_count: int
    geometry_url: str
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime


class ZoneView(View):
    """A zone of a version; its id is the same in every version that has its code."""

    zone_id: UUID
    code: str
    name: str
    zone_type: ZoneType
    capacity: int
    access_mode: AccessMode
    membership_tier: str | None
    allowed_roles: list[str]
    row_count: int
    metadata: JsonObject
    created_at: datetime
    updated_at: datetime


class VersionDetailView(VersionView):
    """A version with its zones."""

    venue_id: UUID
    zones: list[ZoneView]


class PinnedEventView(View):
    """An event that has a version of the layout."""

    event_id: UUID
    name: str
    status: Status
    layout_version: int


class ZoneCount(View):
    """A zone as it was read."""

    code: str
    name: str
    zone_type: ZoneType
    capacity: int
    seat_count: int
    row_count: int


class StoredView(View):
    """What came of an import or a generation; `version` is null when it was only tried."""

    name: str
    total_capacity: int
    seat_count: int
    zones: list[ZoneCount]
    version: VersionView | None


class GenerateBody(Body):
    """What shall be generated: a preset, under a name of its own if wanted, or a spec."""

    name: Annotated[str, Field(min_length=1, max_length=120, pattern=SOME_TEXT)] | None = None
    preset: str | None = Field(default=None, json_schema_extra={"enum": [*PRESET_NAMES, None]})
    spec: Spec | None = None


class PlacedSeatView(View):
    """A seat and where it belongs in one version."""

    seat_code: str
    zone_code: str
    row: str
    label: str
    category: str
    x: int
    y: int


class SeatChangeView(View):
    """A seat before and after."""

    before: PlacedSeatView
    after: PlacedSeatView


class ZoneChangeView(View):
    """A zone that is in both versions, and which of its fields differ."""

    zone_code: str
    fields: list[str]


class SeatsView(View):
    """Seats that differ in one way: how many, and the first of them."""

    count: int
    seats: list[PlacedSeatView]


class SeatChangesView(View):
    """Seats that are in both versions and differ in one way: how many, and the first of them."""

    count: int
    seats: list[SeatChangeView]


class DiffView(View):
    """What is different between two versions."""

    added: SeatsView
    removed: SeatsView
    moved: SeatChangesView
    relabelled: SeatChangesView
    rezoned: SeatChangesView
    recategorised: SeatChangesView
    zones_added: list[str]
    zones_removed: list[str]
    zones_changed: list[ZoneChangeView]


@router.get("/schemas/layout.json")
@guarded(Action.SEE_CONTRACT)
async def get_layout_schema() -> dict[str, Any]:
    """The form of a layout document, as JSON Schema."""
    return dict(json_schema())


@router.get("/admin/layouts")
@guarded(Action.SEE_LAYOUTS, CursorInvalid)
async def list_layouts(
    caller: Caller, venue_id: UUID | None = None, cursor: Cursor = None, limit: Limit = LIMIT
) -> Listed[LayoutView]:
    """The organization's layouts."""
    page = await usecases.list_layouts(
        caller.services.studio, caller.call, venue_id=venue_id, cursor=cursor, limit=limit
    )
    return Listed(data=[LayoutView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/admin/venues/{venue_id}/layouts", status_code=201, openapi_extra=DOCUMENT_BODY)
@guarded(
    Action.CHANGE_LAYOUTS,
    VenueNotFound,
    *IMPORT_ERRORS,
    body_bytes_max=DOCUMENT_BYTES_MAX,
    body_wait_s=UPLOAD_WAIT_S,
)
async def import_layout(
    venue_id: UUID,
    caller: Caller,
    response: Response,
    *,
    written: Annotated[Literal["json", "pretix"], Query(alias="format")] = "json",
    dry_run: DryRun = False,
    key: IdempotencyKey = None,
) -> Data[StoredView]:
    """Begin a layout from a document. Everything that is wrong with it is told at once, and then nothing is stored."""
    stored = await usecases.import_layout(
        caller.services.studio,
        caller.call,
        venue_id,
        caller.body,
        Format(written),
        is_dry_run=dry_run,
        once=once(key, caller, f"import_layout {venue_id} {written}"),
    )
    return _answer(stored, response)


@router.post("/admin/venues/{venue_id}/layouts/generate", status_code=201)
@guarded(Action.CHANGE_LAYOUTS, VenueNotFound, SpecInvalid, *IMPORT_ERRORS)
async def generate_layout(
    venue_id: UUID,
    body: GenerateBody,
    caller: Caller,
    response: Response,
    *,
    dry_run: DryRun = False,
    key: IdempotencyKey = None,
) -> Data[StoredView]:
    """Begin a layout from a preset or a spec."""
    layout = await _generated(body, caller)
    stored = await usecases.add_layout(
        caller.services.studio,
        caller.call,
        venue_id,
        layout,
        is_dry_run=dry_run,
        once=once(key, caller, f"generate_layout {venue_id}"),
    )
    return _answer(stored, response)


@router.post("/admin/layouts/preview")
@guarded(Action.CHANGE_LAYOUTS, SpecInvalid, LayoutInvalid)
async def preview_layout(body: GenerateBody, caller: Caller) -> Response:
    """The geometry of what would be generated, to be drawn while somebody tries; nothing is stored."""
    layout = await _generated(body, caller)
    drawn = await caller.services.studio.work(lambda: usecases.preview(layout))
    return _gzipped(drawn, caller)


@router.get("/admin/layouts/{layout_id}/versions")
@guarded(Action.SEE_LAYOUTS, LayoutNotFound, CursorInvalid)
async def list_versions(
    layout_id: UUID, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT
) -> Listed[VersionView]:
    """The versions of a layout, latest first."""
    page = await usecases.list_versions(
        caller.services.studio, caller.call, LayoutId(layout_id), cursor=cursor, limit=limit
    )
    return Listed(data=[_version(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/admin/layouts/{layout_id}/versions", status_code=201, openapi_extra=SHEET_BODY)
@guarded(
    Action.CHANGE_LAYOUTS,
    VenueNotFound,
    *IMPORT_ERRORS,
    body_bytes_max=DOCUMENT_BYTES_MAX,
    body_wait_s=UPLOAD_WAIT_S,
)
async def import_version(
    layout_id: UUID,
    caller: Caller,
    response: Response,
    *,
    written: Annotated[Format, Query(alias="format")] = Format.JSON,
    numbering: Annotated[
        Literal["across", "odd_even"], Query(description="How a sheet without positions counts")
    ] = "across",
    dry_run: DryRun = False,
    key: IdempotencyKey = None,
) -> Data[StoredView]:
    """Add a version: seats and zones that keep their codes keep their ids."""
    stored = await usecases.import_version(
        caller.services.studio,
        caller.call,
        LayoutId(layout_id),
        caller.body,
        written,
        is_dry_run=dry_run,
        is_odd_even=numbering == "odd_even",
        once=once(key, caller, f"import_version {layout_id} {written}"),
    )
    return _answer(stored, response)


@router.get("/admin/layouts/{layout_id}/versions/{version}")
@guarded(Action.SEE_LAYOUTS, LayoutNotFound)
async def get_version(layout_id: UUID, version: Number, caller: Caller) -> Data[VersionDetailView]:
    """One version with its zones."""
    found = await usecases.get_version(caller.services.studio, caller.call, LayoutId(layout_id), version)
    zones = [
        ZoneView(
            **{name: getattr(one.zone, name) for name in ZoneView.model_fields if hasattr(one.zone, name)},
            zone_id=one.zone_id,
            row_count=one.row_count,
            created_at=one.created_at,
            updated_at=one.updated_at,
        )
        for one in found.zones
    ]
    known = _version(found.version).model_dump()
    return Data(data=VersionDetailView(**known, venue_id=found.venue_id, zones=zones))


@router.post("/admin/layouts/{layout_id}/versions/{version}/activate")
@guarded(Action.MOVE_LAYOUTS, LayoutNotFound, LayoutMoveRefused, CapacityExceeded, VenueNotFound)
async def activate_version(layout_id: UUID, version: Number, body: OrderBody, caller: Caller) -> Data[VersionView]:
    """Let events choose it; the version that was chosen before is archived."""
    return await _move(layout_id, version, VersionStatus.ACTIVE, body, caller)


@router.post("/admin/layouts/{layout_id}/versions/{version}/archive")
@guarded(Action.MOVE_LAYOUTS, LayoutNotFound, LayoutMoveRefused)
async def archive_version(layout_id: UUID, version: Number, body: OrderBody, caller: Caller) -> Data[VersionView]:
    """Let no new event choose it; those that have it keep it."""
    return await _move(layout_id, version, VersionStatus.ARCHIVED, body, caller)


@router.get("/admin/layouts/{layout_id}/diff")
@guarded(Action.SEE_LAYOUTS, LayoutNotFound)
async def compare_versions(
    layout_id: UUID,
    caller: Caller,
    before: Annotated[int, Query(alias="from", ge=1, le=1_000_000)],
    after: Annotated[int, Query(alias="to", ge=1, le=1_000_000)],
) -> Data[DiffView]:
    """What is different between two versions; of each kind the number, and the first 200 seats."""
    found = await usecases.compare(caller.services.studio, caller.call, LayoutId(layout_id), before, after)
    return Data(data=_diff(found))


@router.get("/admin/layouts/{layout_id}/events")
@guarded(Action.SEE_LAYOUTS, LayoutNotFound)
async def list_layout_events(layout_id: UUID, caller: Caller) -> Data[list[PinnedEventView]]:
    """Which events have which version of the layout, the latest version first; at most 200."""
    found = await usecases.list_pinned_events(caller.services.studio, caller.call, LayoutId(layout_id))
    return Data(data=[PinnedEventView.model_validate(one) for one in found])


@router.get("/admin/layouts/{layout_id}/versions/{version}/export", response_class=Response)
@guarded(Action.SEE_LAYOUTS, LayoutNotFound)
async def export_version(
    layout_id: UUID,
    version: Number,
    caller: Caller,
    written: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> Response:
    """A version as a file, which imports as the same version."""
    data = await usecases.export(caller.services.studio, caller.call, LayoutId(layout_id), version, Format(written))
    name = f"layout-{layout_id}-v{version}.{written}"
    kind = "text/csv" if written == "csv" else "application/json"
    return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


@router.get("/layouts/{layout_id}/v{version}/geometry", response_class=Response)
@guarded(Action.SEE_STOREFRONT, LayoutNotFound)
async def get_geometry(layout_id: UUID, version: Number, caller: Caller) -> Response:
    """Where every seat is and what it is called, by ordinal. It never changes: keep it as long as you like.

    Of a version that an event on show has, to everybody; of the others, to the organization's own people.
    """
    drawing = await usecases.get_drawing(caller.services.studio, caller.call, LayoutId(layout_id), version)
    headers = {"etag": f'"{drawing.etag}"', "cache-control": "private, max-age=31536000, immutable"}
    if drawing.etag.encode() in caller.headers.get(b"if-none-match", b""):
        return Response(status_code=304, headers=headers)
    answer = _gzipped(drawing.gzipped, caller)
    answer.headers.update(headers)
    return answer


async def _generated(body: GenerateBody, caller: Context) -> Layout:
    if (body.preset is None) == (body.spec is None) or (body.preset and body.preset not in presets.PRESETS):
        raise SpecInvalid(presets=list(PRESET_NAMES))
    spec = body.spec or presets.preset(body.preset or "")
    if body.name:
        spec = replace(spec, name=body.name)
    return await caller.services.studio.work(lambda: generate(spec))


async def _move(
    layout_id: UUID, version: int, to: VersionStatus, body: OrderBody, caller: Context
) -> Data[VersionView]:
    moved = await usecases.move_version(
        caller.services.studio, caller.call, LayoutId(layout_id), version, to, reason=body.reason
    )
    return Data(data=_version(moved))


def _gzipped(data: bytes, caller: Context) -> Response:
    """A compressed document, as it is to whoever takes it so."""
    if b"gzip" in caller.headers.get(b"accept-encoding", b""):
        return Response(
            data, media_type="application/json", headers={"content-encoding": "gzip", "vary": "accept-encoding"}
        )
    return Response(gzip.decompress(data), media_type="application/json", headers={"vary": "accept-encoding"})


def _answer(stored: Stored, response: Response) -> Data[StoredView]:
    """201 for a version that is there, 200 for one that was only tried."""
    if stored.version is None:
        response.status_code = 200
    layout = stored.layout
    return Data(
        data=StoredView(
            name=layout.name,
            total_capacity=layout.total_capacity,
            seat_count=layout.seat_count,
            zones=[_counted(zone) for zone in layout.zones],
            version=_version(stored.version) if stored.version else None,
        )
    )


def _counted(zone: Zone) -> ZoneCount:
    return ZoneCount(
        code=zone.code,
        name=zone.name,
        zone_type=zone.zone_type,
        capacity=zone.capacity,
        seat_count=zone.seat_count,
        row_count=len(zone.rows),
    )


def _version(version: Version) -> VersionView:
    known = {name: getattr(version, name) for name in VersionView.model_fields if name != "geometry_url"}
    return VersionView(**known, geometry_url=geometry_url(version))


def geometry_url(version: Version) -> str:
    """Where the geometry of a version is."""
    return f"/api/layouts/{version.layout_id}/v{version.version}/geometry"


def _diff(found: LayoutDiff) -> DiffView:
    return DiffView(
        added=_seats(found.added),
        removed=_seats(found.removed),
        moved=_changes(found.moved),
        relabelled=_changes(found.relabelled),
        rezoned=_changes(found.rezoned),
        recategorised=_changes(found.recategorised),
        zones_added=[zone.code for zone in found.zones_added],
        zones_removed=[zone.code for zone in found.zones_removed],
        zones_changed=[_zone_change(one) for one in found.zones_changed],
    )


def _seats(found: tuple[PlacedSeat, ...]) -> SeatsView:
    return SeatsView(count=len(found), seats=[_placed(one) for one in found[:SEATS_SHOWN_MAX]])


def _changes(found: tuple[SeatChange, ...]) -> SeatChangesView:
    shown = [SeatChangeView(before=_placed(one.before), after=_placed(one.after)) for one in found[:SEATS_SHOWN_MAX]]
    return SeatChangesView(count=len(found), seats=shown)


def _placed(one: PlacedSeat) -> PlacedSeatView:
    seat = one.seat
    return PlacedSeatView(
        seat_code=seat.code,
        zone_code=one.zone_code,
        row=one.row_label,
        label=seat.label,
        category=seat.category,
        x=seat.x,
        y=seat.y,
    )


def _zone_change(one: ZoneChange) -> ZoneChangeView:
    return ZoneChangeView(zone_code=one.zone_code, fields=list(one.fields))
