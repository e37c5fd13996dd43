"""Test by which types a window reads the columns of tables, and which it refuses."""

from typing import Any

import pytest

from makewhole.compute.value_types import ColumnKind, value_types
from makewhole.config.key_layout import with_layout
from makewhole.model.pipeline import Hop, Pipeline, Remedies, Remedy
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.value_types import ValueTypes
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

OBSERVING = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
INT, TEXT, JSONB = ColumnKind.of("integer"), ColumnKind.of("text"), ColumnKind.of("jsonb")
INTS, TEXTS = (ColumnKind.of(f"{element}[]", element=element) for element in ("integer", "text"))
OPAQUE = ColumnKind.of("addr", is_opaque=True)


def pipeline(declared: str = "string", where: str | None = None, **of_hop: Any) -> Pipeline:
    ledger, store = (
        TablePoint(name=name, kind=kind, connection="db", table=f"shop.{name}", key=("id",), time="at")
        for name, kind in (("orders", PointKind.LEDGER), ("copy", PointKind.STORE))
    )
    hop = Hop(source="orders", target="copy", remedies=OBSERVING, where=where, **of_hop)
    return Pipeline(name="p", points={"orders": ledger, "copy": store}, hops=(hop,), compare={"x": declared})


def types_of(one: ColumnKind, other: ColumnKind, of: Pipeline) -> tuple[ValueTypes, list[str]]:
    """Return the types, and the problems as `path: found`."""
    usual = {"id": TEXT, "at": ColumnKind.of("timestamp with time zone")}
    found, problems = value_types(of, {"orders": {**usual, "x": one}, "copy": {**usual, "x": other}})
    return found, [f"{problem.path}: {problem.found}" for problem in problems]


@pytest.mark.parametrize(
    ("one", "other", "read"),
    [
        (TEXT, TEXT, None),
        (TEXT, INT, "int"),
        (ColumnKind.of("real"), ColumnKind.of("numeric"), "int"),
        (ColumnKind.of("double precision"), TEXT, "int"),
        (JSONB, ColumnKind.of("json"), "json"),
        (JSONB, TEXT, "json"),
        (JSONB, INTS, "json"),
        (INTS, INTS, "int[]"),
        (TEXTS, TEXT, "string[]"),
        (ColumnKind.of("character"), ColumnKind.of("character varying"), "char"),
        (ColumnKind.of("character"), ColumnKind.of("boolean"), "boolean"),
        (ColumnKind.of("date"), ColumnKind.of("timestamp without time zone"), "timestamp"),
        (ColumnKind.of("inet"), ColumnKind.of("cidr"), "inet"),
        (ColumnKind.of("uuid"), TEXT, "uuid"),
        (ColumnKind.of("mood"), TEXT, None),
        (ColumnKind.of("money"), ColumnKind.of("money"), None),
    ],
)
def test_a_string_is_read_in_the_type_of_its_columns(one: ColumnKind, other: ColumnKind, read: str | None) -> None:
    types, problems = types_of(one, other, pipeline())
    assert (types.values, problems) == ({} if read is None else {"x": read}, [])


@pytest.mark.parametrize(
    ("declared", "one", "other", "refused"),
    [
        ("string", INT, ColumnKind.of("boolean"), "of type boolean: no value is both"),
        ("string", INTS, TEXTS, "of type text[]: no value is both"),
        ("string", ColumnKind.of("mood"), INT, "of type integer: no value is both"),
        ("string", TEXT, OPAQUE, "shop.copy.x (point copy) is of type addr, which no type reads"),
        ("int", TEXT, ColumnKind.of("date"), "is of type date, of which no value is compared as int"),
        ("timestamp", INT, TEXT, "is of type integer, of which no value is compared as timestamp"),
        ("decimal(8,2)", JSONB, TEXT, "is of type jsonb, of which no value is compared as decimal(8,2)"),
        ("json", TEXT, ColumnKind.of("uuid"), "is of type uuid, of which no value is compared as json"),
        ("boolean", TEXT, ColumnKind.of("numeric"), None),
        ("date", TEXT, ColumnKind.of("timestamp with time zone"), None),
        ("json", INTS, TEXT, None),
    ],
)
def test_a_column_that_cannot_be_what_the_file_says_is_named(
    declared: str, one: ColumnKind, other: ColumnKind, refused: str | None
) -> None:
    _, problems = types_of(one, other, pipeline(declared))
    assert [problem.endswith(refused or "") for problem in problems] == ([True] if refused else [])


@pytest.mark.parametrize(
    ("where", "kind", "read", "is_refused"),
    [
        ("x = 19.0", TEXT, "int", False),
        ("x = '19.0'", INT, "int", False),
        ("x = 'n/a'", INT, "int", True),
        ("x = 'n/a'", TEXT, "string", False),
        ("x = true", TEXT, "boolean", False),
        ("x = true", INT, "int", True),
        ("x = '2013-01-01'", ColumnKind.of("date"), "date", False),
        ("x = 'yesterday'", ColumnKind.of("date"), "date", True),
        ("x = '{}'", JSONB, "json", True),
        ("x = 1", INTS, "int[]", True),
    ],
)
def test_a_filter_is_compared_in_the_type_of_its_column(
    where: str, kind: ColumnKind, read: str, is_refused: bool
) -> None:
    types, problems = types_of(kind, kind, pipeline(where=where))
    assert (types.filters, [one.startswith("hops orders→copy.where: ") for one in problems]) == (
        {"x": read},
        [True] if is_refused else [],
    )


def test_what_a_window_reads_otherwise_leaves_the_document_of_its_file_as_it_is() -> None:
    written = pipeline(write={"x": "string", "y": "int"})
    read = with_layout(written, {}, ValueTypes(values={"x": "json", "y": "json"}, filters={"z": "int"}))
    assert (read.compare, read.hops[0].write, read.filter_types) == (
        {"x": "json"},
        {"x": "json", "y": "int"},
        {"z": "int"},
    )
    assert configuration_document(read) == configuration_document(written)
    assert with_layout(read, {}).compare == {"x": "string"}
