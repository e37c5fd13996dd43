"""Test what every format of datasets asks of an item that writes a row."""

import dataclasses
from decimal import Decimal

import pyarrow as pa
import pytest

from makewhole.datasets.items_of_chunks import fields_of, is_newer, own_topic, require_as_expected
from makewhole.datasets.key_rows import DescribedRow
from makewhole.model.errors import ActionRefusedError
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import PointKind, TablePoint
from makewhole.tables.items import UpsertRow
from makewhole.tables.rows import TableRow

POINT = TablePoint(
    name="lake",
    kind=PointKind.STORE,
    connection="lake",
    table="orders",
    key=("id",),
    version="v",
    dataset=DatasetPlace(format="parquet"),
)


def item(value: str = "{}") -> UpsertRow:
    """Return an item that writes a row of the key O1, whose amount is to be 2.50."""
    return UpsertRow(
        seq=1,
        key="O1",
        key_columns=("id",),
        value=value,
        before=(),
        columns=("id", "amount"),
        expected=(("amount", "decimal(8,2)", "2.50"),),
    )


def row(key: str, amount: str) -> pa.Table:
    """Return one row, as it would be written."""
    return pa.table({"id": [key], "amount": pa.array([Decimal(amount)], pa.decimal128(8, 2))})


@pytest.mark.parametrize("value", ["[]", "null", "1", "", "{", "not JSON"])
def test_a_value_that_is_no_object_is_refused_and_not_an_error(value: str) -> None:
    with pytest.raises(ActionRefusedError, match="its value is no JSON object"):
        fields_of(item(value))


def test_fields_are_exact_and_fill_the_key() -> None:
    assert fields_of(item('{"amount": 0.10000000000000000001}')) == {
        "id": "O1",
        "amount": Decimal("0.10000000000000000001"),
    }


@pytest.mark.parametrize(
    ("stored", "of_record", "expected"),
    [(3, 2, True), (2, 2, False), (1, 2, False), (None, 2, False), (3, None, False)],
)
def test_a_row_is_newer_where_both_versions_are_known_alone(
    stored: int | None, of_record: int | None, *, expected: bool
) -> None:
    version = None if stored is None else Decimal(stored)
    described = DescribedRow(row=TableRow(table_oid=1, ctid="", text=""), key="O1", time=None, version=version)
    assert is_newer(POINT, described, {"v": of_record}) is expected
    assert not is_newer(dataclasses.replace(POINT, version=None), described, {"v": of_record})


def test_a_row_has_its_own_key_and_what_the_item_means() -> None:
    require_as_expected(POINT, item(), row("O1", "2.50"))
    with pytest.raises(ActionRefusedError, match="key"):
        require_as_expected(POINT, item(), row("O2", "2.50"))
    with pytest.raises(ActionRefusedError, match="amount would not hold what the record is compared by"):
        require_as_expected(POINT, item(), row("O1", "2.51"))


OF_TOPICS = dataclasses.replace(
    POINT,
    dataset=DatasetPlace(format="parquet", partition="p", offset="o", topic="t", of_topics=("orders", "more")),
)


def test_a_new_row_gets_the_topic_of_its_own_hop() -> None:
    new = dataclasses.replace(item(), topic="more")
    there = TableRow(table_oid=1, ctid="", text="")
    assert own_topic(OF_TOPICS, new) == {"t": "more"}
    assert own_topic(POINT, new) == {}
    assert own_topic(OF_TOPICS, item()) == {}
    assert own_topic(OF_TOPICS, dataclasses.replace(new, columns=("id", "t"))) == {}, "the record says it"
    assert own_topic(OF_TOPICS, dataclasses.replace(new, before=(there,))) == {}


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_row_of_no_topic_of_the_point_is_not_written(kind: pa.DataType) -> None:
    def of_topic(name: str | None) -> pa.Table:
        return row("O1", "2.50").append_column("t", pa.array([name], pa.string()).cast(kind))

    require_as_expected(OF_TOPICS, item(), of_topic("more"))
    for name in (None, "others"):
        with pytest.raises(ActionRefusedError, match="would not say that it is of a topic which leads into"):
            require_as_expected(OF_TOPICS, item(), of_topic(name))
        require_as_expected(POINT, item(), of_topic(name))
