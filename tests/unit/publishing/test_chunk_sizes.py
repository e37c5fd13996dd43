"""Divide the rows of published files into transactions: bounded by their number and by their bytes."""

from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.publishing.manifest import SCHEMA, ChunkSizes

pytestmark = pytest.mark.unit

ROWS, BYTES = 4, 20
VALUES = st.none() | st.integers(0, 30).map(bytes)
HEADERS = st.none() | st.lists(st.tuples(st.text("k", max_size=5), VALUES), max_size=3)
RECORDS = st.fixed_dictionaries({"record_key": VALUES, "value": VALUES, "headers": HEADERS})
Record = dict[str, Any]


def size(record: Record) -> int:
    """Return the bytes of a record."""
    headers = sum(len(name) + len(value or b"") for name, value in record["headers"] or ())
    return len(record["record_key"] or b"") + len(record["value"] or b"") + headers


def expected(records: list[Record]) -> tuple[int, ...]:
    """Return the numbers of rows, counted one by one."""
    chunks: list[list[int]] = []
    for record in records:
        is_full = not chunks or len(chunks[-1]) == ROWS or sum(chunks[-1]) + size(record) > BYTES
        if is_full:
            chunks.append([])
        chunks[-1].append(size(record))
    return tuple(map(len, chunks))


def table(records: list[Record]) -> pa.Table:
    rows = [
        {
            **record,
            "headers": None if record["headers"] is None else [{"key": k, "value": v} for k, v in record["headers"]],
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@given(st.lists(st.lists(RECORDS, max_size=8), max_size=4))
def test_transactions_are_as_full_as_may_be_however_the_rows_come(tables: list[list[Record]]) -> None:
    sizes = ChunkSizes()
    with (
        mock.patch("makewhole.publishing.manifest.ROWS_OF_A_CHUNK", ROWS),
        mock.patch("makewhole.publishing.manifest.BYTES_OF_A_CHUNK", BYTES),
    ):
        for records in tables:
            sizes.add(table(records).slice(0))
    assert sizes.rows == expected([record for records in tables for record in records])
