"""Check that a target is held to the latest version known from any window, in the order of versions and deletions."""

from typing import Any

import pytest

from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.compute.judge.judge_versions import judge_versions
from makewhole.compute.versions import MOMENTS, UNREADABLE
from tests.unit.compute.judge.bucket_input import HOP, NEW, NEWER, OLD, bucket, one, verdict_by_key

pytestmark = pytest.mark.unit


def before(key: str, offset: int, row_hash: int = OLD, **more: Any) -> dict[str, Any]:
    """Return a copy of a window before."""
    return {"key": key, "place": f"0:{offset}", "row_hash": row_hash, "is_replay": False, "is_later": False, **more}


def tombstone(key: str, offset: int, **more: Any) -> dict[str, Any]:
    return before(key, offset, is_tombstone=True, ends_earlier=True, **more)


def judged(known: BucketInput) -> dict[str, tuple[str, str | None]]:
    frame = judge_versions(known).select("key", "verdict", "hint")
    return {key: (verdict, hint) for key, verdict, hint in frame.rows()}


def test_an_older_version_that_is_sent_again_is_not_the_latest() -> None:
    source = [one("back", 9, OLD, version=4), one("kept", 10, OLD, version=4), one("lost", 11, OLD, version=4)]
    target = [one("back", 0, OLD, version=4), one("kept", 1, NEW, version=5)]
    of_windows = [before(key, at, NEW, version=5) for at, key in enumerate(("back", "kept", "lost"))]
    known = bucket(source, target, source_elsewhere=of_windows, target_is_topic=False)

    assert judged(known) == {
        "back": ("mismatched", "stale_version"),
        "kept": ("matched", None),
        "lost": ("missing", None),
    }
    assert judge_versions(known)["latest_place"].sort().to_list() == ["0:0", "0:1", "0:2"]


def test_a_row_that_was_rewritten_is_held_to_the_latest_version_of_the_windows_before() -> None:
    target = [one("wrong", 0, NEWER), one("older", 1, OLD), one("right", 2, NEW)]
    of_windows = [before(key, at, NEW) for at, key in enumerate(("wrong", "older", "right"))]
    of_windows += [before("older", 0, OLD, is_later=False) | {"place": "0:0"}]
    known = bucket([], target, source_elsewhere=of_windows, target_is_topic=False)

    assert judged(known) == {"wrong": ("mismatched", None), "older": ("mismatched", "stale_version")}


def test_a_row_of_a_key_that_an_earlier_window_deleted_is_stale() -> None:
    known = bucket(
        [],
        [one("a", 0, OLD)],
        source_elsewhere=[before("a", 1, OLD, version=2), tombstone("a", 5)],
        target_is_topic=False,
    )

    assert judged(known) == {"a": ("mismatched", "stale_version")}


def test_a_row_with_a_later_version_or_with_one_that_is_not_known_is_left_to_other_windows() -> None:
    later = bucket(
        [],
        [one("a", 0, NEWER)],
        source_elsewhere=[before("a", 1, NEW), before("a", 9, NEWER, is_later=True)],
        target_is_topic=False,
    )
    unknown = bucket(
        [], [one("a", 0, NEWER)], source_elsewhere=[before("a", 1) | {"row_hash": None}], target_is_topic=False
    )
    elsewhere = {"place": "1:1"}
    unordered = [before("a", 1, OLD), before("a", 1, NEW) | elsewhere]
    either = bucket([], [one("a", 0, NEWER)], source_elsewhere=unordered, target_is_topic=False)

    assert judged(later) == judged(unknown) == judged(either) == {}


def test_positions_order_no_rows_of_other_windows_where_a_log_was_cut_off() -> None:
    known = bucket(
        [], [one("a", 0, NEWER)], source_elsewhere=[before("a", 1, NEW)], target_is_topic=False, has_cut=True
    )
    numbered = [before("a", 1, NEW, version=2)]

    assert judged(known) == {}
    known = bucket([], [one("a", 0, NEWER)], source_elsewhere=numbered, target_is_topic=False, has_cut=True)
    assert judged(known) == {"a": ("mismatched", None)}


def test_a_tombstone_ends_all_versions_before_it() -> None:
    source = [one("gone", 1, OLD, version=2), one("gone", 2, is_tombstone=True)]
    source += [one("again", 3, OLD, version=7), one("again", 4, is_tombstone=True), one("again", 5, NEW, version=1)]
    known = bucket(source, [one("again", 0, NEW, version=1)], target_is_topic=False)

    assert judged(known) == {"again": ("matched", None), "gone": ("matched", None)}
    kept = bucket(source, [one("gone", 0, OLD, version=2), one("again", 0, OLD, version=7)], target_is_topic=False)
    assert judged(kept) == {"again": ("mismatched", "stale_version"), "gone": ("mismatched", "stale_version")}


def test_a_tombstone_of_this_window_ends_what_windows_before_have_in_any_partition() -> None:
    source = [one("a", 5, is_tombstone=True, partition=1)]
    known = bucket(source, [], source_elsewhere=[before("a", 9, OLD, version=2)], target_is_topic=False)

    assert judged(known) == {"a": ("matched", None)}


def test_a_key_that_came_back_after_a_deletion_begins_again() -> None:
    of_windows = [before("a", 1, OLD, version=7), tombstone("a", 2)]
    known = bucket(
        [one("a", 9, NEW, version=1)],
        [one("a", 0, NEW, version=1)],
        source_elsewhere=of_windows,
        target_is_topic=False,
    )
    reborn = [before("a", 1, OLD, version=7), before("a", 3, NEW, version=1, ends_earlier=True)]
    row = bucket([], [one("a", 0, NEW, version=1)], source_elsewhere=reborn, target_is_topic=False)

    assert (judged(known), judged(row)) == ({"a": ("matched", None)}, {})


def test_a_deletion_in_a_later_window_and_what_came_after_it_is_no_loss_of_this_one() -> None:
    later = [tombstone("a", 20, is_later=True), before("b", 21, NEW, version=1, ends_earlier=True, is_later=True)]
    source = [one("a", 1, OLD, version=7), one("b", 2, OLD, version=7)]
    known = bucket(source, [one("b", 0, NEW, version=1)], source_elsewhere=later, target_is_topic=False)

    assert judged(known) == {"a": ("matched", None), "b": ("matched", None)}


def test_a_tombstone_that_was_read_with_the_slice_of_a_later_window_ends_what_is_before_it() -> None:
    """Such copies say nothing of what they end; those of the key index do."""
    later = [
        before("a", 9, is_tombstone=True, is_later=True) | {"row_hash": None},
        before("a", 10, NEW, version=1, is_later=True),
    ]
    target = [one("a", 0, NEW, version=1)]
    known = bucket([one("a", 0, OLD, version=5)], target, source_elsewhere=later, target_is_topic=False)

    assert judged(known) == {"a": ("matched", None)}


def test_nothing_orders_a_tombstone_among_versions_of_another_partition() -> None:
    source = [one("a", 1, OLD, version=7), one("a", 2, is_tombstone=True, partition=1)]

    for target in ([], [one("a", 0, OLD, version=7)]):
        assert judged(bucket(source, target, target_is_topic=False)) == {"a": ("undecidable", "order_unknown")}


def test_what_is_no_version_may_be_the_latest() -> None:
    source = [one("a", 1, OLD, version=UNREADABLE), one("a", 2, NEW, version=2), one("b", 3, NEW, version=UNREADABLE)]
    source += [one("c", 4, OLD, version=3), one("c", 5, NEW, version=MOMENTS + 1)]
    target = [one("a", 0, NEW), one("b", 1, NEW), one("c", 2, OLD)]

    assert judged(bucket(source, target, target_is_topic=False)) == {
        "a": ("undecidable", "unreadable_version"),
        "b": ("matched", None),
        "c": ("undecidable", "unreadable_version"),
    }
    assert verdict_by_key(judge_versions, bucket(source[:2], [], target_is_topic=False)) == {"a": "undecidable"}


def test_a_moment_and_a_number_are_not_ordered() -> None:
    source, target = [one("a", 1, NEW, version=MOMENTS + 1)], [one("a", 0, NEW, version=5)]

    assert judged(bucket(source, target, target_is_topic=False)) == {"a": ("matched", None)}


OUTSIDE = {"excluded_by": [HOP]}


def test_a_filter_is_asked_of_the_latest_version_of_any_window() -> None:
    """Of each key an older version comes again, which passes."""
    names = ("gone", "loaded", "repeated")
    source = [one(key, at, OLD, version=4) for at, key in enumerate(names)]
    target = [one("loaded", 0, OLD, version=4), one("repeated", 1, OLD), one("repeated", 2, NEW)]
    of_windows = [before(key, at, NEW, version=5, **OUTSIDE) for at, key in enumerate(names)]
    known = bucket(source, target, source_elsewhere=of_windows, target_is_topic=False)

    left = ("unexpected", "left_filter")
    assert judged(known) == {"gone": ("matched", None), "loaded": left, "repeated": left}


def test_a_row_of_a_key_that_left_the_filter_in_a_window_before_is_unexpected() -> None:
    """Whether a version passed before that or not; where the key came back, its row is compared."""
    target = [one(key, at, OLD) for at, key in enumerate(("left", "never", "back", "later"))]
    of_windows = [before(key, 0, OLD) for key in ("left", "back", "later")]
    of_windows += [before(key, 1, NEW, **OUTSIDE) for key in ("left", "never", "back", "later")]
    of_windows += [before("back", 2, NEW), before("later", 9, OLD) | {"is_later": True}]
    known = bucket([], target, source_elsewhere=of_windows, target_is_topic=False)

    left = ("unexpected", "left_filter")
    assert judged(known) == {"left": left, "never": left, "back": ("mismatched", "stale_version")}


def test_an_older_version_that_does_not_pass_takes_no_key_out() -> None:
    """The latest one, of a window before, passes: a loader that believed the older one made a gap."""
    source = [one(key, at, OLD, version=4, **OUTSIDE) for at, key in enumerate(("deleted", "kept", "other"))]
    target = [one("kept", 0, NEW, version=5), one("other", 1, NEWER, version=5)]
    of_windows = [before(key, at, NEW, version=5) for at, key in enumerate(("deleted", "kept", "other"))]
    known = bucket(source, target, source_elsewhere=of_windows, target_is_topic=False)

    assert judged(known) == {"deleted": ("missing", None), "other": ("mismatched", None)}
    assert not judge_versions(known)["in_source"].any()


def test_a_record_without_a_version_after_one_that_has_may_be_the_latest() -> None:
    """In its partition, in a window before, or in another partition; not where it surely came first, and where it says
    the same it makes no difference. A higher version that came after it is the latest."""
    names = ("after", "before", "same", "beside", "ended")
    source = [one(key, at, NEW, version=3) for at, key in enumerate(names, start=50)]
    source += [one("after", 60, OLD), one("before", 40, OLD), one("same", 61, NEW), one("beside", 40, OLD, partition=1)]
    source += [one("ended", 62, OLD), one("ended", 63, NEWER, version=4)]
    of_windows = [
        before("sent again", 1, NEW, version=3),
        before("sent again", 2, OLD),
        before("since", 3, NEW, version=3),
    ]
    source += [one("sent again", 70, NEW, version=3), one("since", 71, OLD)]
    target = [one(key, at, OLD) for at, key in enumerate((*names, "sent again", "since"))]
    known = bucket(source, target, source_elsewhere=of_windows, target_is_topic=False)

    unknown, wrong = ("undecidable", "unreadable_version"), ("mismatched", "stale_version")
    assert judged(known) == {
        **dict.fromkeys(("after", "beside", "sent again", "since"), unknown),
        **dict.fromkeys(("before", "ended"), wrong),
        "same": ("mismatched", None),
    }


def test_a_record_without_a_version_that_does_not_pass_may_have_taken_its_key_out() -> None:
    source = [one("a", 7, OLD, **OUTSIDE)]
    known = bucket(source, [], source_elsewhere=[before("a", 1, NEW, version=5)], target_is_topic=False)

    assert judged(known) == {"a": ("undecidable", "unreadable_version")}


def test_a_version_that_was_read_under_another_filter_is_not_known() -> None:
    """It neither takes its key out nor keeps it in, where it could be the latest."""
    unknown = {"excluded_by": [UNKNOWN_FILTER]}
    names = ("held", "absent", "older")
    source = [one("held", 0, OLD, version=4), one("absent", 1, OLD, version=4), one("older", 2, OLD, version=6)]
    target = [one("held", 0, NEW, version=5), one("older", 1, OLD, version=6), one("alone", 2, NEW)]
    of_windows = [before(key, at, NEW, version=5, **unknown) for at, key in enumerate((*names, "alone"))]
    known = bucket(source, target, source_elsewhere=of_windows, target_is_topic=False)

    assert judged(known) == {
        "held": ("undecidable", "unreadable_value"),
        "absent": ("missing", None),
        "older": ("matched", None),
        "alone": ("unexpected", None),
    }
