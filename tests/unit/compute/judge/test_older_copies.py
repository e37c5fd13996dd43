"""Test which copies of other windows are surely older than the latest version of their key in a slice."""

from decimal import Decimal

import polars as pl
import pytest

from makewhole.compute.frames import HASHES
from makewhole.compute.judge.older_copies import older_copies
from makewhole.compute.versions import MOMENTS, UNREADABLE, VERSION

pytestmark = pytest.mark.unit

Copy = tuple[str, int | Decimal | None]
"""Place and version."""
_SCHEMA = {**HASHES, "place": pl.String, "version": VERSION}


def frame(*copies: Copy) -> pl.DataFrame:
    rows = [(1, 2, place, None if version is None else Decimal(version)) for place, version in copies]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


@pytest.mark.parametrize(
    ("of_runs", "latest", "is_older"),
    [
        ([("0:1", 4)], ("1:7", 5), True),
        ([("0:9", 4)], ("0:7", 5), True),
        ([("0:1", 5)], ("0:7", 5), False),
        ([("0:1", 6)], ("0:7", 5), False),
        ([("0:1", 4), ("0:2", 6)], ("0:7", 5), False),
        ([("0:1", None)], ("0:7", None), True),
        ([("0:9", None)], ("0:7", None), False),
        ([("1:1", None)], ("0:7", None), False),
        ([("0:1", None)], ("0:7", 5), False),
        ([("0:1", UNREADABLE)], ("0:7", 5), False),
        ([("0:1", 5)], ("0:7", MOMENTS + 1), False),
    ],
)
def test_a_lower_number_or_an_earlier_offset_is_older(of_runs: list[Copy], latest: Copy, is_older: bool) -> None:
    older = older_copies(frame(*of_runs), frame(latest), has_former=False)
    assert len(older) == int(is_older)


def test_the_latest_version_of_a_run_counts_beside_its_first_copy() -> None:
    run = frame(("0:1", 1)).with_columns(
        pl.lit("0:3").alias("last_place"), pl.lit(6, dtype=VERSION).alias("last_version")
    )
    assert older_copies(run, frame(("0:7", 5)), has_former=False).is_empty()
    assert len(older_copies(run, frame(("0:7", 7)), has_former=False)) == 1


def test_offsets_of_a_log_that_the_topic_had_before_order_nothing() -> None:
    assert older_copies(frame(("0:1", None)), frame(("0:7", None)), has_former=True).is_empty()
    assert len(older_copies(frame(("0:1", 1)), frame(("0:7", 2)), has_former=True)) == 1


def test_rows_of_a_table_are_ordered_by_their_versions_alone() -> None:
    assert len(older_copies(frame(("(0,1)", 1)), frame(("(0,2)", 2)), has_former=False)) == 1
    assert older_copies(frame(("(0,1)", None)), frame(("(0,2)", None)), has_former=False).is_empty()


def test_a_key_that_the_slice_does_not_have_has_no_older_copies() -> None:
    assert older_copies(frame(("0:1", 1)), frame(), has_former=False).is_empty()
    assert older_copies(frame(), frame(("0:7", 2)), has_former=False).is_empty()
