"""Check what each verdict of an upsert hop means, one by one."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import IS_GONE
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.compute.judge.judge_versions import judge_versions
from tests.unit.compute.judge.bucket_input import NEW, NEWER, OLD, bucket, copies, one, verdict_by_key

pytestmark = pytest.mark.unit


def verdicts(known: BucketInput) -> dict[str, str]:
    return verdict_by_key(judge_versions, known)


def hints(known: BucketInput) -> dict[str, str | None]:
    return dict(judge_versions(known).select("key", "hint").rows())


def elsewhere(key: str, offset: int, row_hash: int = OLD, **more: Any) -> dict[str, Any]:
    return {"key": key, "place": f"0:{offset}", "row_hash": row_hash, "is_replay": False, **more}


def test_the_store_is_compared_with_the_last_of_several_versions() -> None:
    source = [one("a", 0, OLD), one("a", 1, NEW), one("b", 2, OLD), one("b", 3, NEW), one("c", 4, OLD)]
    known = bucket(source, [one("a", 0, NEW), one("b", 1, OLD), one("c", 2, NEWER)], target_is_topic=False)

    assert verdicts(known) == {"a": "matched", "b": "mismatched", "c": "mismatched"}
    assert hints(known) == {"a": None, "b": "stale_version", "c": None}
    assert judge_versions(known).filter(pl.col("key") == "b")["latest_place"].item() == "0:3"


def test_a_number_decides_before_the_position() -> None:
    source = [one("a", 0, NEW, version=2), one("a", 1, OLD, version=1)]

    assert verdicts(bucket(source, [one("a", 0, NEW)])) == {"a": "matched"}
    assert verdicts(bucket(source, [one("a", 0, OLD)])) == {"a": "mismatched"}


def test_an_older_number_at_the_target_is_stale_though_nothing_compared_differs() -> None:
    known = bucket([one("a", 0, version=2)], [one("a", 0, version=1)])

    assert (verdicts(known), hints(known)) == ({"a": "mismatched"}, {"a": "stale_version"})


def test_several_versions_in_a_topic_are_no_duplicates_and_several_rows_of_a_table_are() -> None:
    source, target = [one("a", 0), one("a", 1, NEW)], [one("a", 0), one("a", 1, NEW)]

    assert verdicts(bucket(source, target)) == {"a": "matched"}
    assert verdicts(bucket(source, target, target_is_topic=False)) == {"a": "duplicate"}


def test_a_deleted_key_is_absent_at_the_target_or_stale() -> None:
    source = [one("a", 0), one("a", 1, is_tombstone=True)]

    assert verdicts(bucket(source, [], target_is_topic=False)) == {"a": "matched"}
    assert verdicts(bucket(source, [one("a", 7), one("a", 8, is_tombstone=True)])) == {"a": "matched"}
    stale = bucket(source, [one("a", 0)], target_is_topic=False)
    assert (verdicts(stale), hints(stale)) == ({"a": "mismatched"}, {"a": "stale_version"})


def test_a_tombstone_of_a_key_that_the_source_never_had_is_not_unexpected() -> None:
    assert verdicts(bucket([], [one("a", 0), one("a", 1, is_tombstone=True)])) == {}
    assert verdicts(bucket([], [one("a", 0, is_tombstone=True), one("a", 1)])) == {"a": "unexpected"}


def test_a_key_whose_latest_record_deletes_it_is_missing_where_the_source_has_it() -> None:
    known = bucket([one("a", 0)], [one("a", 0), one("a", 1, is_tombstone=True)])

    assert (verdicts(known), hints(known)) == ({"a": "missing"}, {"a": "deleted"})


def test_a_store_that_is_ahead_of_the_window_is_fine_when_the_log_has_that_version_later() -> None:
    source = [one("a", 0, OLD)]

    ahead = bucket(source, [one("a", 0, NEW)], source_elsewhere=[elsewhere("a", 50, NEW, is_later=True)])
    gone = bucket(source, [], source_elsewhere=[elsewhere("a", 50, is_tombstone=True, is_later=True)])
    assert verdicts(ahead) == verdicts(gone) == {"a": "matched"}
    assert judge_versions(ahead)["has_later"].item() is True
    assert verdicts(bucket(source, [one("a", 0, NEW)])) == {"a": "mismatched"}


def test_a_later_version_at_the_target_can_make_a_key_matched_and_never_mismatched() -> None:
    source = [one("a", 0, NEW)]

    assert verdicts(bucket(source, [], target_elsewhere=[elsewhere("a", 90, NEW, is_later=True)])) == {"a": "matched"}
    here = [one("a", 5, NEW)]
    assert verdicts(bucket(source, here, target_elsewhere=[elsewhere("a", 90, OLD, is_later=True)])) == {"a": "matched"}


def test_an_older_version_at_the_target_is_pending_while_the_latest_is_not_settled() -> None:
    known = bucket([one("a", 0), one("a", 1, NEW)], [one("a", 0)], target_is_topic=False, unsettled=["a"])

    assert verdicts(known) == {"a": "pending"}


def test_which_of_two_partitions_has_the_latest_is_not_known_without_numbers() -> None:
    source = [one("a", 0, OLD, partition=0), one("a", 0, NEW, partition=1)]

    known = bucket(source, [one("a", 0, NEW)], target_is_topic=False)
    assert (verdicts(known), hints(known)) == ({"a": "undecidable"}, {"a": "order_unknown"})
    assert verdicts(bucket(source, [one("a", 0, NEWER)], target_is_topic=False)) == {"a": "mismatched"}
    equal = [one("a", 0, NEW, partition=0), one("a", 0, NEW, partition=1)]
    assert verdicts(bucket(equal, [one("a", 0, NEW)], target_is_topic=False)) == {"a": "matched"}


def test_rows_of_a_ledger_are_in_the_order_of_their_times() -> None:
    rows = [
        one("a", 0, NEW, place="(0,1)", time=datetime(2025, 1, 2, tzinfo=UTC)),
        one("a", 0, OLD, place="(0,2)", time=datetime(2025, 1, 1, tzinfo=UTC)),
    ]

    assert verdicts(bucket(rows, [one("a", 0, NEW)], source_is_topic=False)) == {"a": "matched"}
    at_once = [row | {"time": rows[0]["time"]} for row in rows]
    assert verdicts(bucket(at_once, [one("a", 0, NEW)], source_is_topic=False)) == {"a": "undecidable"}


def test_a_value_that_an_old_index_does_not_know_is_not_known() -> None:
    run = [{"key": "a", "place": "0:7", "is_replay": False}]

    known = bucket([one("a", 90)], [], target_elsewhere=run)
    assert (verdicts(known), hints(known)) == ({"a": "undecidable"}, {"a": "unreadable_value"})


def test_a_version_that_was_handed_over_and_is_nowhere_any_more_is_not_known() -> None:
    known = bucket([], [one("a", 0)], handed_over=["a", "b"], target_is_topic=False)

    assert (verdicts(known), hints(known)) == (
        {"a": "undecidable", "b": "missing"},
        {"a": "source_gone", "b": None},
    )


def test_a_key_that_waited_too_long_is_missing_where_the_target_has_no_version_of_it() -> None:
    """A target one version behind may be so all the time: whose version waits too long is not unsettled any more."""
    source = [one("none", 0, NEW), one("older", 1, NEW), one("late", 2, NEW)]
    target = [one("older", 0, OLD), one("late", 1, OLD)]
    answers = verdict_by_key(
        judge_versions,
        bucket(source, target, unsettled=["none", "older"], overdue=["none", "older", "late"]),
    )
    assert answers == {"none": "missing", "older": "pending", "late": "mismatched"}


def test_a_version_of_a_log_that_is_gone_came_before_those_of_the_log_that_is_there() -> None:
    rows = [one("a", 9, OLD), one("a", 1, NEW), one("b", 9, OLD), one("c", 9, OLD), one("c", 1, NEW)]
    known = bucket(rows, [one("a", 0, NEW), one("b", 1, OLD), one("c", 2, OLD)], target_is_topic=False)
    gone = pl.Series(IS_GONE, [True, False, True, False, True])
    source = copies(rows, is_topic=True).with_columns(gone)

    assert verdicts(replace(known, source=source)) == {"a": "matched", "b": "matched", "c": "matched"}
    assert verdicts(replace(known, source=source.drop(IS_GONE))) == {"a": "mismatched", "b": "matched", "c": "matched"}


def test_a_higher_number_counts_wherever_it_was() -> None:
    source = copies([one("a", 9, NEW, version=2), one("a", 1, OLD, version=1)], is_topic=True).with_columns(
        pl.Series(IS_GONE, [True, False])
    )
    known = bucket([], [one("a", 0, NEW, version=2)], target_is_topic=False)

    assert verdicts(replace(known, source=source)) == {"a": "matched"}
