"""Check which rows differ from what earlier windows read of their keys."""

from decimal import Decimal

import polars as pl
import pytest

from makewhole.compute.frames import KEYS, TOPIC_KEYS
from makewhole.compute.judge.rewritten_rows import OF_WINDOW, rewritten_rows

pytestmark = pytest.mark.unit

HOP = "orders→warehouse"


def records(*copies: dict[str, object]) -> pl.DataFrame:
    """Records of the key 1 (if they have no other), each in a window."""
    rows = []
    for at, copy in enumerate(copies):
        row: dict[str, object] = {"key": "k", "key_hi": 1, "key_lo": 0, "partition": 0, "offset": at, OF_WINDOW: 1}
        row |= {"is_aborted": False, "is_tombstone": False, "excluded_by": []}
        row |= copy
        row["place"] = f"{row['partition']}:{row['offset']}"
        rows.append(row)
    return pl.DataFrame(rows, schema=TOPIC_KEYS | {OF_WINDOW: pl.Int32})


def table(*rows: dict[str, object]) -> pl.DataFrame:
    """Rows of the key 1, if they have no other."""
    named = [{"key": "k", "key_hi": 1, "key_lo": 0, "place": f"(0,{at})"} | row for at, row in enumerate(rows)]
    return pl.DataFrame(named, schema=KEYS)


def differing(copies: pl.DataFrame, rows: pl.DataFrame, *, is_upsert: bool) -> list[str]:
    return rewritten_rows(copies, rows, HOP, is_upsert=is_upsert)["place"].to_list()


def version(number: int, row_hash: int | None, **more: object) -> dict[str, object]:
    return {"version": Decimal(number), "row_hash": row_hash, **more}


@pytest.mark.parametrize("is_upsert", [False, True])
def test_a_row_with_the_value_of_its_record_is_left_alone(*, is_upsert: bool) -> None:
    copies = records({"row_hash": 7})
    assert differing(copies, table({"row_hash": 7}), is_upsert=is_upsert) == []
    assert differing(copies, table({"row_hash": 8}), is_upsert=is_upsert) == ["(0,0)"]
    assert differing(copies, table({"row_hash": 8, "key_hi": 2}), is_upsert=is_upsert) == []
    assert differing(copies, table(), is_upsert=is_upsert) == []


@pytest.mark.parametrize("is_upsert", [False, True])
def test_all_rows_of_a_key_with_several_are_taken(*, is_upsert: bool) -> None:
    twice = table({"row_hash": 7}, {"row_hash": 7})
    assert differing(records({"row_hash": 7}), twice, is_upsert=is_upsert) == ["(0,0)", "(0,1)"]


@pytest.mark.parametrize("is_upsert", [False, True])
def test_a_value_that_is_not_known_says_nothing(*, is_upsert: bool) -> None:
    assert differing(records({"row_hash": None}), table({"row_hash": 8}), is_upsert=is_upsert) == []


def test_any_value_of_an_event_will_do_and_none_that_is_no_copy_of_the_hop() -> None:
    copies = records({"row_hash": 7}, {"row_hash": 8})
    assert differing(copies, table({"row_hash": 8}), is_upsert=False) == []
    aborted = records({"row_hash": 7}, {"row_hash": 8, "is_aborted": True})
    assert differing(aborted, table({"row_hash": 8}), is_upsert=False) == ["(0,0)"]
    outside = records({"row_hash": 7}, {"row_hash": 8, "excluded_by": [HOP]})
    assert differing(outside, table({"row_hash": 8}), is_upsert=False) == ["(0,0)"]


def test_the_latest_version_of_all_windows_counts() -> None:
    copies = records(version(5, 7), version(6, 8, of_window=2), version(4, 9, of_window=3))
    assert differing(copies, table(version(6, 8)), is_upsert=True) == []
    assert differing(copies, table(version(5, 7)), is_upsert=True) == ["(0,0)"]
    assert differing(copies, table(version(4, 9)), is_upsert=True) == ["(0,0)"]


def test_a_version_that_differs_alone_is_seen() -> None:
    assert differing(records(version(5, 7)), table(version(4, 7)), is_upsert=True) == ["(0,0)"]
    assert differing(records(version(5, 7)), table({"row_hash": 7}), is_upsert=True) == []


@pytest.mark.parametrize(("held", "places"), [(10, []), (20, []), (9, []), (0, ["(0,0)"]), (30, ["(0,0)"])])
def test_a_version_that_the_column_rounds_or_a_loader_cuts_off_does_not_differ(held: int, places: list[str]) -> None:
    copies, rows = records(version(17, 7)), table(version(held, 7))
    rewritten = rewritten_rows(copies, rows, HOP, is_upsert=True, version_unit=Decimal(10))
    assert rewritten["place"].to_list() == places
    assert differing(records({"row_hash": 7}), table(version(5, 7)), is_upsert=True) == []


def test_a_row_of_a_key_that_was_deleted_or_left_the_filter_is_seen() -> None:
    deleted = records(version(5, 7), {"row_hash": None, "is_tombstone": True, "of_window": 2})
    assert differing(deleted, table(version(5, 7)), is_upsert=True) == ["(0,0)"]
    left = records(version(5, 7), version(6, 8, excluded_by=[HOP]))
    assert differing(left, table(version(5, 7)), is_upsert=True) == ["(0,0)"]
