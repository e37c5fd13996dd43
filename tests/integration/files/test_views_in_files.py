"""Test columns of views in Parquet files: texts, bytes and lists as Arrow's newer writers store them."""

import json
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from makewhole.datasets.files.open_dataset import FilesSession
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.tables.items import UpsertRow
from tests.integration.files.test_files_reading import read, shape_of
from tests.integration.files.test_files_windows import MADE
from tests.integration.files.test_files_writer import chunk_of, nothing, point_of
from tests.world.files_lake import FilesPlace, row_of

pytestmark = pytest.mark.integration

TYPES: dict[str, Any] = {
    "id": pa.string_view(),
    "number": pa.int64(),
    "region": pa.string_view(),
    "amount": pa.decimal128(8, 2),
    "at": pa.timestamp("us", "UTC"),
    "raw": pa.binary_view(),
    "tags": pa.list_view(pa.string()),
    "places": pa.large_list_view(pa.float64()),
    "parts": pa.struct([("list", pa.list_view(pa.struct([("text", pa.string())])))]),
}
SCHEMA = pa.schema(TYPES)
MORE: list[dict[str, Any]] = [
    {"raw": b"\x00\xff", "tags": ["a", None], "places": [float("nan"), 0.5], "parts": {"list": [{"text": "x"}, None]}},
    {"raw": None, "tags": None, "places": None, "parts": None},
    {"raw": b"", "tags": [], "places": [], "parts": {"list": None}},
    {"raw": b"x" * 40, "tags": ["é" * 20], "places": [-0.0], "parts": {"list": []}},
]


def fill(place: FilesPlace) -> list[dict[str, Any]]:
    """Write a file in which O1 has another amount, and O2 is missing; return what it is to be."""
    right = [{**row_of(MADE[at]), **MORE[at]} for at in range(4)]
    wrong = [right[0], {**right[1], "amount": Decimal("99.00")}, right[3]]
    place.add("a.parquet", wrong, SCHEMA, row_group_size=2)
    return right


def shown(rows: list[dict[str, Any]]) -> str:
    """Return rows as they are read, NaN as itself."""
    return str(pa.Table.from_pylist(rows, schema=SCHEMA).to_pylist())


def test_views_are_read_as_what_they_show(place: FilesPlace) -> None:
    right = fill(place)
    compare = {"region": "string", "tags": "string[]", "places": "double[]", "parts": "json"}
    rows = read(place, shape_of(place, compare=compare))
    assert rows["key"].to_list() == ["O0", "O1", "O3"]
    assert rows["c:region"].to_list() == [right[at]["region"] for at in (0, 1, 3)]
    plain = FilesPlace(path=f"{place.path}-plain", fields=place.fields)
    types: dict[str, Any] = {
        **TYPES,
        "id": pa.string(),
        "region": pa.string(),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "places": pa.large_list(pa.float64()),
        "parts": pa.struct([("list", pa.list_(pa.struct([("text", pa.string())])))]),
    }
    plain.add("a.parquet", place.table("a.parquet").to_pylist(), pa.schema(types))
    assert rows.select(pl.exclude("place")).equals(
        read(plain, shape_of(plain, compare=compare)).select(pl.exclude("place"))
    )


def test_file_with_views_is_written_again_as_it_was(place: FilesPlace) -> None:
    right, point = fill(place), point_of(place)
    table = FilesSession(connection=place.connection).open_table(point)
    items = [
        UpsertRow(
            seq=seq,
            key=f"O{at}",
            key_columns=("id",),
            columns=tuple(MADE[at]),
            value=json.dumps(MADE[at]),
            left=("raw", "tags", "places", "parts.list"),
            before=tuple(table.rows_of_key(f"O{at}")),
        )
        for seq, at in enumerate((1, 2))
    ]
    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)

    assert dict(receipt.refused) == {}
    again = place.table("a.parquet")
    assert again.schema.remove_metadata().equals(SCHEMA)
    assert str(again.to_pylist()) == shown([right[0], right[1], right[3]])
    [new] = [name for name in place.names() if name.startswith("makewhole-")]
    assert str(place.table(new).to_pylist()) == shown([{**right[2], **dict.fromkeys(MORE[0])}])
