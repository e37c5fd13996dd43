"""Check that what is asked of a table by the names of a file is asked by its columns, and comes back by the names."""

import json

import polars as pl
import pytest

from makewhole.compute.row_filter import typed_term
from makewhole.model.errors import Problem
from makewhole.model.points import Erased, PointKind, TablePoint
from makewhole.tables.description import Column, TableDescription
from makewhole.tables.items import QuarantineRows, UpsertRow
from makewhole.tables.named.names import (
    items_in_table,
    named_change,
    named_description,
    named_frame,
    named_problem,
    named_record,
    named_row,
    reading_in_table,
    shape_in_table,
)
from makewhole.tables.row_change import ColumnChange, HowFilled, RowChange
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow
from makewhole.tables.shape import TableShape

pytestmark = pytest.mark.unit

POINT = TablePoint(
    name="dw",
    kind=PointKind.STORE,
    connection="db",
    table="t",
    key=("nr",),
    time="at",
    erased=Erased(column="gone"),
    columns=(("nr", "No."), ("a", "b"), ("b", "a"), ("gone", "Deleted At")),
)
SHAPE = TableShape(
    point=POINT,
    compare={"a": "int", "b": "string", "c": "string"},
    filters={"x→y": (typed_term("a", 1), typed_term("c", "z"))},
)


def test_a_reader_is_asked_for_columns_and_its_frames_have_the_names() -> None:
    asked = shape_in_table(SHAPE)

    assert (asked.point.key, asked.point.time, asked.point.erased) == (("No.",), "at", Erased(column="Deleted At"))
    assert list(asked.compare.items()) == [("b", "int"), ("a", "string"), ("c", "string")]
    assert [term.column for term in asked.filters["x→y"]] == ["b", "c"]
    assert asked.column_names() == {"No.", "at", "Deleted At", "a", "b", "c"}
    frame = pl.DataFrame({"key": ["k"], "c:b": ["1"], "c:a": ["t"], "c:c": [None]})
    assert named_frame(SHAPE, frame).to_dicts() == [{"key": "k", "c:a": "1", "c:b": "t", "c:c": None}]
    assert shape_in_table(asked) is asked


def test_what_is_written_names_the_columns_of_the_table() -> None:
    item = UpsertRow(
        seq=1,
        key="k",
        key_columns=("nr",),
        value='{"a":1.50,"b":"\\u00fc","a":123456789012345678901234567890.5}',
        columns=("nr", "a", "b"),
        before=(),
        expected=(("a", "int", "1"),),
        moment="at",
        left=("gone", "c"),
    )
    moved = QuarantineRows(seq=2, key="k", survivor=None, extras=())

    written, same = items_in_table(POINT, [item, moved])

    assert isinstance(written, UpsertRow) and same is moved
    assert (written.key_columns, written.columns) == (("No.",), ("No.", "b", "a"))
    assert written.value == '{"b":123456789012345678901234567890.5,"a":"\\u00fc"}'
    assert (written.expected, written.moment, written.left) == ((("b", "int", "1"),), "at", ("Deleted At", "c"))
    assert json.loads(written.over_key) == {"No.": "k", "a": "ü", "b": 123456789012345678901234567890.5}


def test_rows_and_records_come_back_by_name() -> None:
    row = ValuedRow(
        row=TableRow(table_oid=1, ctid="(0,1)", text='{"a":1}'), place="(0,1)", values={"a": "1", "c": None}
    )
    assert named_row(POINT, row).values == {"b": "1", "c": None}
    assert named_row(POINT, row).row is row.row

    reading = reading_in_table(POINT, LedgerReading(columns={"a": "int"}, terms=SHAPE.filters["x→y"]))
    assert (list(reading.columns), [term.column for term in reading.terms]) == (["b"], ["b", "c"])
    whole = LedgerRecord(
        key=b"k", value=b'{"No.":1,"a":[1.50],"c":null}', timestamp_ms=0, compared=(("b", "int", "1"),)
    )
    record = named_record(POINT, whole)
    assert (record.value, record.compared) == (b'{"nr":1,"b":[1.50],"c":null}', (("a", "int", "1"),))


def test_a_table_is_described_by_the_names_and_a_column_without_one_is_distinguished() -> None:
    point = TablePoint(name="dw", kind=PointKind.STORE, connection="db", table="t", key=("id",), columns=(("a", "b"),))
    columns = {
        name: Column(
            name=name,
            type="text",
            base_type="text",
            is_generated=False,
            is_identity_always=False,
            is_required=False,
            has_default=False,
        )
        for name in ("id", "a", "b")
    }

    named = named_description(point, TableDescription(schema="s", name="t", columns=columns))

    assert [(name, column.name) for name, column in named.columns.items()] == [
        ("id", "id"),
        ('"a"', '"a"'),
        ("a", "a"),
    ]
    assert named.writable == named.unfilled == ("id", '"a"', "a")
    change = ColumnChange(name="b", how=HowFilled.WRITTEN, before=None, after="1")
    (shown,) = named_change(point, RowChange(before=(), after=('{"b":1}',), columns=(change,))).columns
    assert shown.name == "a"


def test_a_problem_of_a_column_has_both_of_its_names() -> None:
    absent = Problem(file="pipeline file", path="points.dw.b", found="t has no column b", remedy="It has: c")
    other = Problem(file="pipeline file", path="points.dw.c", found="t has no column c", remedy="It has: b")

    named = named_problem(POINT, absent)

    assert (named.path, named.found) == ("points.dw.columns.a", "t has no column b, which is a")
    assert named_problem(POINT, other) == other
