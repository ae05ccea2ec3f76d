"""The format of layouts as a JSON Schema, for editors and other programs.

It tells what a document may look like. What must fit together (codes that are unique, companions that exist) no schema
can tell: reading a document does.
"""

from enum import StrEnum

from voelgoed.seating import document, model
from voelgoed.seating.rules import ROLES

Schema = dict[str, object]


def json_schema() -> Schema:
    """The schema of the whole document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Layout",
        "description": "Zones hold rows, rows hold seats. Lengths are centimetres; y grows downwards.",
        **_object(
            {
                "format": {"const": document.FORMAT},
                "name": _text(model.NAME_CHARS_MAX),
                "description": _or_null({"type": "string", "maxLength": model.DESCRIPTION_CHARS_MAX}),
                "total_capacity": _or_null(_whole(1, model.CAPACITY_MAX)),
                "zones": _list({"$ref": "#/$defs/zone"}, 1, model.ZONES_MAX),
                "shapes": _or_null(_list({"$ref": "#/$defs/shape"}, 0, model.SHAPES_MAX)),
            },
            required=("format", "name", "zones"),
        ),
        "$defs": {
            "zone": _zone(),
            "row": _row(),
            "seat": _seat(),
            "columns": _columns(),
            "group": _group(),
            "shape": _shape(),
            "point": {"type": "array", "prefixItems": [_coordinate(), _coordinate()], "minItems": 2, "maxItems": 2},
            "run": _object({"start": {"type": "integer"}, "step": {"type": "integer", "not": {"const": 0}}}),
            "text_run": _object(
                {
                    "prefix": {"type": "string"},
                    "start": {"type": "integer", "minimum": 0},
                    "step": {"type": "integer", "not": {"const": 0}},
                }
            ),
        },
    }


def _zone() -> Schema:
    return _object(
        {
            "code": _text(model.ZONE_CODE_CHARS_MAX),
            "name": _text(model.NAME_CHARS_MAX),
            "zone_type": _word(model.ZoneType),
            "capacity": _or_null(_whole(1, model.CAPACITY_MAX)),
            "access_mode": _or_null(_word(model.AccessMode)),
            "membership_tier": _or_null(_text(model.TIER_CHARS_MAX)),
            "allowed_roles": _or_null(_list({"enum": sorted(ROLES)}, 0, len(ROLES))),
            "focal_point": _or_null({"$ref": "#/$defs/point"}),
            "outline": _or_null(_outline()),
            "metadata": _or_null({"type": "object"}),
            "rows": _or_null(_list({"$ref": "#/$defs/row"}, 0, model.ROWS_PER_ZONE_MAX)),
            "groups": _or_null(_list({"$ref": "#/$defs/group"}, 0, model.GROUPS_PER_ZONE_MAX)),
        },
        required=("code", "name", "zone_type"),
    )


def _row() -> Schema:
    return _object(
        {
            "label": _text(model.ROW_LABEL_CHARS_MAX),
            "breaks": _or_null(
                {
                    **_list(_whole(1, model.SEATS_PER_ROW_MAX), 0, model.SEATS_PER_ROW_MAX),
                    "description": "How many seats stand before each aisle.",
                }
            ),
            "seats": {
                "anyOf": [
                    _list({"$ref": "#/$defs/seat"}, 1, model.SEATS_PER_ROW_MAX),
                    {"$ref": "#/$defs/columns"},
                ]
            },
        },
        required=("label", "seats"),
    )


def _seat() -> Schema:
    return _object(
        {
            "code": _or_null(_text(model.SEAT_CODE_CHARS_MAX)),
            "number": _or_null(_whole(0, model.NUMBER_MAX)),
            "label": _or_null(_text(model.SEAT_LABEL_CHARS_MAX)),
            "category": _or_null(_word(model.Category)),
            "position": _or_null(_whole(1, model.POSITION_MAX)),
            "x": _coordinate(),
            "y": _coordinate(),
            "companion_of": _or_null(_text(model.SEAT_CODE_CHARS_MAX)),
        },
        required=("x", "y"),
    )


def _columns() -> Schema:
    category = _word(model.Category)
    places = _list(_whole(1, model.SEATS_PER_ROW_MAX), 0, model.SEATS_PER_ROW_MAX)
    return _object(
        {
            "count": _whole(1, model.SEATS_PER_ROW_MAX),
            "code": _text_column(model.SEAT_CODE_CHARS_MAX),
            "number": _or_null(_whole_column(_whole(0, model.NUMBER_MAX))),
            "label": _text_column(model.SEAT_LABEL_CHARS_MAX),
            "category": _or_null(
                {"anyOf": [category, _column(category), _object(dict.fromkeys(model.Category, _or_null(places)))]}
            ),
            "position": _or_null(_whole_column(_whole(1, model.POSITION_MAX))),
            "x": _whole_column(_coordinate(), is_required=True),
            "y": _whole_column(_coordinate(), is_required=True),
            "companion_of": _or_null(
                {
                    "type": "object",
                    "propertyNames": {"pattern": "^[0-9]+$"},
                    "additionalProperties": _or_null(_text(model.SEAT_CODE_CHARS_MAX)),
                }
            ),
        },
        required=("count", "x", "y"),
    )


def _group() -> Schema:
    return _object(
        {
            "code": _text(model.GROUP_CODE_CHARS_MAX),
            "kind": _word(model.GroupKind),
            "label": _or_null(_text(model.NAME_CHARS_MAX)),
            "seats": _list(_text(model.SEAT_CODE_CHARS_MAX), 1, model.SEATS_PER_GROUP_MAX),
            "metadata": _or_null({"type": "object"}),
        },
        required=("code", "kind", "seats"),
    )


def _shape() -> Schema:
    return _object(
        {"kind": _word(model.ShapeKind), "label": _text(model.NAME_CHARS_MAX), "outline": _outline()},
        required=("kind", "label", "outline"),
    )


def _outline() -> Schema:
    return _list({"$ref": "#/$defs/point"}, model.OUTLINE_POINTS_MIN, model.OUTLINE_POINTS_MAX)


def _whole_column(item: Schema, *, is_required: bool = False) -> Schema:
    cells = _list(item, 1, model.SEATS_PER_ROW_MAX) if is_required else _column(item)
    return {"anyOf": [item, cells, {"$ref": "#/$defs/run"}]}


def _text_column(chars_max: int) -> Schema:
    return _or_null({"anyOf": [_column(_text(chars_max)), {"$ref": "#/$defs/text_run"}]})


def _column(item: Schema) -> Schema:
    return _list(_or_null(item), 1, model.SEATS_PER_ROW_MAX)


def _coordinate() -> Schema:
    return _whole(-model.COORDINATE_MAX, model.COORDINATE_MAX)


def _object(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _list(items: Schema, low: int, high: int) -> Schema:
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


def _text(chars_max: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": chars_max}


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _word(words: type[StrEnum]) -> Schema:
    return {"enum": [word.value for word in words]}


def _or_null(schema: Schema) -> Schema:
    """What may be left out may be null as well."""
    return {"anyOf": [schema, {"type": "null"}]}
