"""Test by which types a window reads the columns of tables, and which it refuses."""

from dataclasses import replace
from typing import Any

import pytest

from makewhole.compute.value_types import ColumnKind, value_types
from makewhole.config.key_layout import with_layout
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
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


def types_of(first: ColumnKind, other: ColumnKind, of: Pipeline) -> tuple[ValueTypes, list[str]]:
    """Return the types, and the problems as `path: found`."""
    usual = {"id": TEXT, "at": ColumnKind.of("timestamp with time zone")}
    types, problems = value_types(of, {"orders": {**usual, "x": first}, "copy": {**usual, "x": other}})
    return types, [f"{problem.path}: {problem.found}" for problem in problems]


@pytest.mark.parametrize(
    ("first", "other", "read"),
    [
        (TEXT, TEXT, None),
        (TEXT, INT, "int"),
        (ColumnKind.of("real"), ColumnKind.of("numeric"), "int"),
        (ColumnKind.of("double precision"), TEXT, "double"),
        (ColumnKind.of("double precision"), ColumnKind.of("real"), "double"),
        (ColumnKind.of("double precision"), INT, "int"),
        (ColumnKind.of("real"), TEXT, "real"),
        (ColumnKind.of("time without time zone"), TEXT, "time"),
        (ColumnKind.of("time without time zone[]", element="time without time zone"), TEXTS, "string[]"),
        (ColumnKind.of("macaddr"), ColumnKind.of("macaddr"), "macaddr"),
        (ColumnKind.of("real"), ColumnKind.of("real"), "real"),
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
        (ColumnKind.of("money"), ColumnKind.of("money"), "int"),
        (ColumnKind.of("money"), ColumnKind.of("numeric"), "int"),
        (ColumnKind.of("money"), ColumnKind.of("real"), "int"),
        (ColumnKind.of("money[]", element="money"), TEXTS, "string[]"),
    ],
)
def test_a_string_is_read_in_the_type_of_its_columns(first: ColumnKind, other: ColumnKind, read: str | None) -> None:
    types, problems = types_of(first, other, pipeline())
    assert (types.values, problems) == ({} if read is None else {"x": read}, [])


@pytest.mark.parametrize(
    ("declared", "first", "other", "refused"),
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
    declared: str, first: ColumnKind, other: ColumnKind, refused: str | None
) -> None:
    _, problems = types_of(first, other, pipeline(declared))
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
    assert (types.filters, [problem.startswith("hops orders→copy.where: ") for problem in problems]) == (
        {"x": read},
        [True] if is_refused else [],
    )


@pytest.mark.parametrize(
    ("where", "kind", "read"),
    [
        ("x < 5", TEXT, "int"),
        ("x < '5'", INT, "int"),
        ("x >= '2013-01-01'", ColumnKind.of("date"), "date"),
        ("x > 'infinity'", ColumnKind.of("timestamp with time zone"), "timestamp"),
        ("x != 5 and x is not null", ColumnKind.of("numeric"), "int"),
        ("x is null", JSONB, "json"),
        ("x is not null", INTS, "int[]"),
        ("x in ('a', 'b')", TEXT, "string"),
    ],
)
def test_comparisons_are_read_in_the_type_of_their_column(where: str, kind: ColumnKind, read: str) -> None:
    types, problems = types_of(kind, kind, pipeline(where=where))
    assert (types.filters, problems) == ({"x": read}, [])


@pytest.mark.parametrize("nature", ["text", "uuid", "boolean", "inet", "mood", "character"])
def test_an_order_of_values_that_have_none_is_refused(nature: str) -> None:
    kind = ColumnKind.of(nature)
    own = {"boolean": "'t'", "uuid": "'6F9619FF-8B86-D011-B42D-00C04FC964FF'", "inet": "'::1'"}
    literal = own.get(nature, "'a'")
    _, problems = types_of(kind, kind, pipeline(where=f"x < {literal}"))
    assert len(problems) == 1
    assert f"shop.orders.x (point orders) is of type {nature} and shop.copy.x" in problems[0]
    assert "needs an order that both sides share" in problems[0]


@pytest.mark.parametrize(
    ("where", "declared", "read", "is_refused"),
    [
        ("x < '2013-01-01'", "timestamp(3)", "timestamp(3)", False),
        ("x < '5'", "decimal(8,2)", "int", False),
        ("x = '5'", "decimal(8,2)", "int", False),
        ("x = 'n/a'", "decimal(8,2)", "string", False),
        ("x < 'n/a'", "decimal(8,2)", "string", True),
        ("x < 'a'", "string", "string", True),
        ("x < 'a'", "json", "string", True),
        ("x > 5 and x != 'n/a'", "string", "string", True),
    ],
)
def test_where_no_table_has_the_column_compare_says_its_type(
    where: str, declared: str, read: str, is_refused: bool
) -> None:
    usual = {"id": TEXT, "at": ColumnKind.of("timestamp with time zone")}
    types, problems = value_types(pipeline(declared, where=where), {"orders": usual, "copy": usual})
    assert (types.filters, [problem.path for problem in problems]) == (
        {"x": read},
        ["hops orders→copy.where"] if is_refused else [],
    )


def test_a_text_column_is_no_moment_because_the_file_compares_it_as_one() -> None:
    types, problems = types_of(TEXT, TEXT, pipeline("timestamp", where="x = '2013-01-01'"))
    assert (types.filters, problems) == ({"x": "string"}, [])


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


def test_a_filter_of_a_column_that_only_records_have_is_compared_in_its_unit() -> None:
    topic = TopicPoint(
        name="log",
        connection="k",
        topic="log",
        key=("$.id",),
        units=(("$.paid", "timestamp(ms)"), ("$.due", "date(days)")),
    )
    of_tables = pipeline()
    where = "paid > '2025-03-01' and due = '2025-03-02' and other = '2025-03-02'"
    hop = Hop(source="log", target="copy", remedies=OBSERVING, where=where)
    both = replace(of_tables, points={"log": topic, "copy": of_tables.points["copy"]}, hops=(hop,))

    types, problems = value_types(both, {"copy": {"id": TEXT, "at": ColumnKind.of("date"), "x": TEXT}})
    assert (types.filters, problems) == ({"paid": "timestamp", "due": "date", "other": "string"}, [])

    _, [problem] = value_types(replace(both, hops=(replace(hop, where="paid > 17"),)), {})
    assert problem.found == "log counts paid in timestamp(ms), and 17 would be compared with it as int"


@pytest.mark.parametrize(
    ("first", "other", "read"),
    [
        ("real", "real", {"x": "real"}),
        ("real", "text", {"x": "real"}),
        ("real", "double precision", {}),
        ("text", "numeric", {}),
    ],
)
def test_a_double_beside_columns_of_four_bytes_alone_is_read_as_they_are(
    first: str, other: str, read: dict[str, str]
) -> None:
    types, problems = types_of(ColumnKind.of(first), ColumnKind.of(other), pipeline("double"))
    assert (dict(types.values), problems) == (read, [])
    assert types.of_values({"x": "double"}) == {"x": read.get("x", "double")}
