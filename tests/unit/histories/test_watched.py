"""Test that the watch of the random histories notices every change that no plan names."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.histories.watched import Contents, Named, RowText, differences_of_contents
from tests.world.consumer import Record

pytestmark = pytest.mark.unit

ROW = {"id": "K1", "amount": 1, "status": "shipped"}
RECORD = Record(partition=0, offset=0, key=b"K1", value=b'{"id": "K1"}', timestamp_ms=7, headers=())
SENT = replace(RECORD, offset=1, headers=(("makewhole-plan", b"p"),))


def row(**changes: object) -> RowText:
    text = json.dumps({**ROW, **changes})
    return RowText(text, text)


def contents(rows: Sequence[RowText] = (row(),), records: Sequence[Record] = (RECORD,)) -> Contents:
    return Contents(
        {"public.warehouse": rows}, {"orders": {(record.partition, record.offset): record for record in records}}
    )


def found(after: Contents, *remedies: str, before: Contents | None = None) -> str:
    named = Named({("public.warehouse", "K1"): remedies, ("orders", "K1"): remedies})
    return "\n".join(
        differences_of_contents(before or contents(), after, named, {"amount"}, lambda columns: str(columns["id"]))
    )


def test_what_stays_is_right_and_so_is_what_plans_name() -> None:
    assert found(contents()) == ""
    assert found(contents([row(amount=2)]), "upsert") == ""
    assert found(contents([]), "quarantine") == ""
    assert found(contents([row()]), "quarantine", before=contents([row(), row()])) == ""
    assert found(contents([row(status="new")]), "upsert", before=contents([])) == ""
    assert found(contents(records=[RECORD, SENT]), "redeliver") == ""


@pytest.mark.parametrize(
    ("after", "remedies", "complaint"),
    [
        ([row(amount=2)], [], "was written, and no plan names it"),
        ([row(amount=2)], ["quarantine"], "was written, and no plan names it"),
        ([row(amount=2, status="new")], ["upsert"], "had status changed, which nothing compares"),
        ([row(note="x")], ["upsert"], "had note changed, which nothing compares"),
        ([row(), row()], ["upsert"], "has in a new row what the table does not put there"),
        ([row(), row()], [], "was written, and no plan names it"),
        ([], ["upsert"], "was taken away, and no plan says so"),
        ([], [], "was taken away, and no plan says so"),
        ([row(id="K2", status="new"), row()], ["upsert"], "K2 in public.warehouse was written"),
    ],
)
def test_a_row_that_no_plan_names_stays(after: list[RowText], remedies: list[str], complaint: str) -> None:
    assert complaint in found(contents(after), *remedies)


@pytest.mark.parametrize(
    ("records", "remedies", "complaint"),
    [
        ([], ["redeliver"], "the record at (0, 0) is gone or another one"),
        ([replace(RECORD, timestamp_ms=8)], ["redeliver"], "the record at (0, 0) is gone or another one"),
        ([RECORD, SENT], [], "K1 was written 1 times, and plans name it 0 times"),
        ([RECORD, SENT], ["upsert"], "K1 was written 1 times, and plans name it 0 times"),
        ([RECORD, SENT, replace(SENT, offset=2)], ["produce"], "K1 was written 2 times, and plans name it 1 times"),
    ],
)
def test_a_record_that_no_plan_names_is_wrong(records: list[Record], remedies: list[str], complaint: str) -> None:
    assert complaint in found(contents(records=records), *remedies)


def test_a_table_that_is_gone_is_wrong() -> None:
    assert "public.warehouse is gone" in found(Contents({}, contents().topics))


def test_numbers_are_compared_to_the_last_digit() -> None:
    before, after = (RowText(text, f'{{"id": "K1", "amount": {text}}}') for text in ("0.10", "0.1"))
    assert "was written, and no plan names it" in found(contents([after]), before=contents([before]))
