"""Test that the fields of a produced value are held against those of the topic's records."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compensation.freezing.record_fields import FieldsOfPair, field_objection
from makewhole.compute.json_fields import fields_of
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode

pytestmark = pytest.mark.unit

OUTBOX = TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="ops.outbox", key=("id",))
HOP = Hop(
    source="outbox",
    target="orders",
    remedies=Remedies(missing=Remedy.PRODUCE, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT),
)
ADVICE = (
    "name a column that holds the whole value under 'payload' at point outbox, or write 'leave_fields: [{}]' there if "
    "the readers of the topic need them not"
)


def pair(in_topic: Any, given: Any) -> FieldsOfPair:
    known, made = (fields_of(document) if isinstance(document, dict) else None for document in (in_topic, given))
    return known, made


def objection(*pairs: FieldsOfPair, point: TablePoint = OUTBOX) -> Refusal | None:
    return field_objection(HOP, point, pairs, {"id", "amount"})


@pytest.mark.parametrize(
    ("in_topic", "given"),
    [
        ({"id": 1, "amount": "1.50", "at": "now"}, {"id": "1", "amount": 1.5, "at": "now"}),
        ({"id": 1, "qty": 2}, {"id": 1, "qty": 2.5}),
        ({"id": 1, "qty": None}, {"id": 1, "qty": "2"}),
        ({"id": 1, "qty": 2}, {"id": 1, "qty": None}),
        ({"id": 1}, {"id": 1, "created_by": "ops"}),
        ([1], {"id": 1}),
        ({"id": 1}, "text"),
    ],
    ids=["compared", "numbers", "null there", "null here", "more here", "no object there", "no object here"],
)
def test_values_of_the_same_form_are_fine(in_topic: Any, given: Any) -> None:
    assert objection(pair(in_topic, given)) is None


def test_a_field_that_all_records_have_and_the_ledger_has_not_is_named_with_the_line_to_write() -> None:
    both = [pair({"id": at, "channel": "web", "tags": []}, {"id": at}) for at in range(3)]
    assert objection(*both) == Refusal(
        RefusalCode.UNFIT,
        "all of the last 3 records in orders have the fields channel, tags, and that of outbox would not; "
        + ADVICE.format("channel, tags"),
    )
    assert objection(*both, point=replace(OUTBOX, leave_fields=("channel", "tags"))) is None
    assert objection(*both, pair({"id": 9, "tags": []}, {"id": 9, "tags": []})) is None  # each is there in some record


def test_a_field_of_another_type_is_named() -> None:
    assert objection(pair({"id": 1, "qty": 2}, {"id": 1, "qty": "2"})) == Refusal(
        RefusalCode.UNFIT,
        "the field qty is a number in the last records in orders, and that of outbox would be a text; "
        + ADVICE.format("qty"),
    )
    assert objection(pair({"id": 1, "qty": 2}, {"id": 1, "qty": "2"}), pair({"qty": "3"}, {"qty": "3"})) is None
    refusal = objection(pair({"id": 1, "qty": 2}, {"id": 1, "qty": "2"}), point=replace(OUTBOX, payload="body"))
    assert refusal is not None
    assert "name another column than body that holds the whole value under 'payload' at point outbox" in refusal.text


def test_without_a_record_to_compare_nothing_is_said() -> None:
    assert objection() is None


def test_each_type_of_json_has_a_name() -> None:
    assert fields_of({"a": True, "b": 1, "c": Decimal("1.5"), "d": "x", "e": None, "f": {}, "g": []}) == {
        "a": "boolean",
        "b": "number",
        "c": "number",
        "d": "text",
        "e": "null",
        "f": "object",
        "g": "list",
    }
