"""Test which columns of a row an upsert writes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compensation.freezing.row_to_write import VersionToWrite, differing_row, missing_row
from makewhole.compute.column_values import ColumnValue
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import Erased, PointKind, TablePoint, TopicPoint
from makewhole.postgres.table import Table
from makewhole.tables.description import Column
from makewhole.tables.items import RowToWrite
from makewhole.tables.new_row import ColumnOrigin, NewRow, new_row
from makewhole.tables.rows import TableRow, ValuedRow

pytestmark = pytest.mark.unit

COMPARE = {"amount": "int", "note": "string"}
PLACEHOLDER = "__debezium_unavailable_value"
VER = VersionToWrite(column="ver", unit=Decimal(1))


def column(name: str, type_: str = "text", **other: Any) -> Column:
    flags = {"is_generated": False, "is_identity_always": False, "is_required": False, "has_default": False}
    return Column(name=name, type=type_, base_type=type_, **{**flags, **other})


def table(*columns: Column) -> Table:
    return Table(oid=1, schema="dw", name="orders", columns={written.name: written for written in columns}, unique=())


ORDERS = table(
    column("seq", "bigint", has_default=True, is_identity_always=True),
    column("id"),
    column("amount", "integer"),
    column("note"),
    column("double", is_generated=True),
    column("ver", "bigint"),
    column("channel"),
    column("remark"),
    column("loaded_at", "timestamp with time zone"),
    column("status", has_default=True),
)
TOPIC = TopicPoint(name="orders", connection="kafka", topic="orders", key=("$.id",), version="$.meta.version")


def store(**changed: Any) -> TablePoint:
    known: dict[str, Any] = {"key": ("id",), "time": "loaded_at", "version": "ver", **changed}
    return TablePoint(name="dw", kind=PointKind.STORE, connection="pg", table="dw.orders", **known)


def accounted(
    write: Mapping[str, str] | None = None, leave: tuple[str, ...] = (), target: TablePoint | None = None
) -> NewRow:
    remedies = Remedies(missing=Remedy.UPSERT, duplicate=Remedy.REPORT, mismatched=Remedy.UPSERT)
    hop = Hop(source="orders", target="dw", remedies=remedies, write=write or {}, leave=leave)
    return new_row(ORDERS, hop, TOPIC, target or store(), COMPARE)


def in_lake(topic: Column, *, place: str = "t", leave: tuple[str, ...] = (), write: Any = None) -> NewRow:
    """Account for the columns of a dataset whose rows say their topics at a place, of which two lead into it."""
    dataset = DatasetPlace(format="parquet", partition="p", offset="o", topic=place, of_topics=("more", "orders"))
    target = store(time=None, version=None, dataset=dataset, columns=(("of", "_kafka.topic"),))
    remedies = Remedies(missing=Remedy.UPSERT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
    hop = Hop(source="orders", target="dw", remedies=remedies, write=write or {}, leave=leave)
    return new_row(table(column("id"), topic), hop, TOPIC, target, {})


def values(**raws: Any) -> dict[str, ColumnValue]:
    declared = {**COMPARE, "ver": "bigint", "channel": "string"}
    known = {"amount": 5, "note": "a", "ver": 2, "channel": "web", **raws}
    types = ORDERS.base_types
    return {name: ColumnValue.of_record(known[name], kind, types[name]) for name, kind in declared.items()}


def row(amount: str | None, note: str | None, ver: str | None) -> ValuedRow:
    image = TableRow(table_oid=1, ctid="(0,1)", text="{}")
    return ValuedRow(row=image, place="(0,1)", values={"amount": amount, "note": note, "ver": ver})


def test_every_column_of_a_new_row_comes_from_somewhere() -> None:
    new = accounted(write={"channel": "string"}, leave=("remark",))
    assert new.origins == {
        "seq": ColumnOrigin.OWN,
        "id": ColumnOrigin.KEY,
        "amount": ColumnOrigin.COMPARED,
        "note": ColumnOrigin.COMPARED,
        "double": ColumnOrigin.OWN,
        "ver": ColumnOrigin.VERSION,
        "channel": ColumnOrigin.WRITTEN,
        "remark": ColumnOrigin.LEFT,
        "loaded_at": ColumnOrigin.MOMENT,
        "status": ColumnOrigin.OWN,
    }
    assert (new.unaccounted, new.moment) == ((), "loaded_at")
    assert new.written == ("id", "amount", "note", "ver", "channel", "loaded_at")
    assert new.declared == {"amount": "int", "note": "string", "ver": "bigint", "channel": "string"}


def test_what_nothing_accounts_for_is_named() -> None:
    assert accounted().unaccounted == ("channel", "remark")
    assert accounted(target=store(time=None)).unaccounted == ("channel", "remark", "loaded_at")
    assert accounted(leave=("channel", "remark", "loaded_at")).moment is None
    assert accounted(target=store(erased=Erased(column="remark"))).unaccounted == ("channel",), "a new row is live"


def test_a_time_and_a_default_that_the_file_names_come_from_the_record() -> None:
    new = accounted(write={"channel": "string", "loaded_at": "timestamp", "status": "string"}, leave=("remark",))
    named = ("loaded_at", "status", "channel")
    assert {new.origins[name] for name in named} == {ColumnOrigin.WRITTEN}
    assert new.moment is None


def test_a_missing_row_is_written_whole_or_not_at_all() -> None:
    new = accounted(write={"channel": "string"}, leave=("remark",))
    written = missing_row(new, values(), "orders→dw", VER)
    assert written.columns == new.written
    assert written.moment == "loaded_at"
    assert [(name, text) for name, _, text in written.expected] == [
        ("amount", "5"),
        ("note", "a"),
        ("ver", "2"),
        ("channel", "web"),
    ]
    with pytest.raises(RefusedError, match="nothing says what channel, remark of a new row holds"):
        missing_row(accounted(), values(), "orders→dw", VER)


def differing(held: ValuedRow, version: VersionToWrite | None = VER, **raws: Any) -> RowToWrite:
    return differing_row(ORDERS, values(**raws), COMPARE, version, held)


def test_of_a_row_that_differs_the_differing_columns_are_written_and_its_version() -> None:
    assert differing(row("7", "a", "1")).columns == ("amount", "ver")
    assert differing(row("7", "b", "2")).columns == ("amount", "note")
    assert differing(row("7", "a", None)).columns == ("amount", "ver")
    assert differing(row("5", "a", "1")).columns == ("ver",)
    assert differing(row("7", "a", "1"), version=None).columns == ("amount",)
    assert differing(row("7", "a", "1"), ver=None).columns == ("amount",), (
        "a record without a version has none to write"
    )


def test_a_row_is_held_to_all_that_is_compared_and_to_nothing_else() -> None:
    assert [name for name, _, _ in differing(row("7", "a", "1")).expected] == ["amount", "note", "ver"]


def test_a_version_that_the_column_rounds_is_not_held_to_its_digits() -> None:
    rounded = VersionToWrite(column="ver", unit=Decimal(10))
    new = accounted(write={"channel": "string"}, leave=("remark",))
    assert differing(row("7", "a", "10"), rounded, ver=17).columns == ("amount",)
    assert differing(row("7", "a", "20"), rounded, ver=17).columns == ("amount",)
    assert differing(row("7", "a", "0"), rounded, ver=17).columns == ("amount", "ver")
    for written in (
        differing(row("7", "a", "0"), rounded, ver=17),
        missing_row(new, values(ver=17), "orders→dw", rounded),
    ):
        assert "ver" not in {name for name, _, _ in written.expected}
    assert ("ver", "bigint", "20") in differing(row("7", "a", "0"), rounded, ver=20).expected


def test_a_row_that_equals_its_source_by_now_is_left_alone() -> None:
    with pytest.raises(RefusedError, match="arrived: the row of this key has the values of its source by now"):
        differing(row("5", "a", "2"))


def test_a_placeholder_is_never_written() -> None:
    new = accounted(write={"channel": "string"}, leave=("remark",))
    with pytest.raises(RefusedError, match="unfit: of channel the record has only the placeholder"):
        missing_row(new, values(channel=PLACEHOLDER), "orders→dw", VER)
    with pytest.raises(RefusedError, match="unfit: of note the record has only the placeholder"):
        differing(row("7", "a", "1"), note=PLACEHOLDER)


def test_a_field_that_the_record_does_not_have_replaces_no_value() -> None:
    source = values(note=None)
    assert differing_row(ORDERS, source, COMPARE, None, row("5", "a", None)).columns == ("note",), "null does"
    source |= {"note": ColumnValue.of_record(None, "string", "text", "$.note")}
    with pytest.raises(RefusedError, match="unfit: the record has no field note, and the row has a value there"):
        differing_row(ORDERS, source, COMPARE, None, row("7", "a", None))
    assert differing_row(ORDERS, source, COMPARE, None, row("7", None, None)).columns == ("amount",)
    assert "note" in missing_row(accounted(write={"channel": "string"}, leave=("remark",)), source, "", None).columns


def test_a_column_that_the_table_computes_cannot_be_mended() -> None:
    computed = {"double": "string"}
    source = {"double": ColumnValue.of_record("10", "string", "text")}
    held = ValuedRow(row=row("7", "a", "1").row, place="(0,1)", values={"double": "14"})
    with pytest.raises(RefusedError, match="unfit: double cannot be written: the table computes it"):
        differing_row(ORDERS, source, computed, None, held)


@pytest.mark.parametrize("leave", [(), ("t",)])
def test_a_row_that_says_its_topic_gets_that_of_its_hop(leave: tuple[str, ...]) -> None:
    new = in_lake(column("t", has_default=True), leave=leave)
    assert (new.topic, new.without_topic, new.unaccounted) == ("orders", None, ())
    assert missing_row(new, {}, "orders->dw", None).topic == "orders"
    assert accounted().topic is None, "no dataset"


def test_a_row_that_would_say_no_topic_is_known_before() -> None:
    assert in_lake(column("t"), leave=("t",)).without_topic == "t"
    assert in_lake(column("of"), place="_kafka.topic", leave=("of",)).without_topic == "of"
    assert in_lake(column("of", has_default=True), place="_kafka.topic", leave=("of",)).without_topic is None
    assert in_lake(column("t")).without_topic == "t"
    assert in_lake(column("t"), write={"t": "string"}).without_topic is None
