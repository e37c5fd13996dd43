"""Check what each verdict of an event hop means, one by one."""

from dataclasses import fields, replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import HASHES, REPLAYS
from makewhole.compute.judge.judge_copies import BucketInput, judge, mark_replays
from tests.unit.compute.judge.bucket_input import (
    HOP,
    NEW,
    NEWER,
    OLD,
    PLANS,
    bucket,
    copies,
    hashed,
    one,
    verdict_by_key,
)
from tests.unit.compute.judge.event_oracle import NAMES, bucket_of, situations
from tests.world.examples import examples

pytestmark = pytest.mark.unit


def verdicts(known: BucketInput) -> dict[str, str]:
    return verdict_by_key(judge, known)


def hints(known: BucketInput) -> dict[str, str | None]:
    return dict(judge(known).select("key", "hint").rows())


@settings(max_examples=examples(60), deadline=None)
@given(situations(), st.sampled_from(NAMES))
def test_a_key_is_judged_the_same_alone_and_among_others(known: dict[str, Any], key: str) -> None:
    alone = {
        name: [item for item in value if (item["key"] if isinstance(item, dict) else item) == key]
        if isinstance(value, list) and name != "replays"
        else value
        for name, value in known.items()
    }

    assert judge(bucket_of(alone)).equals(judge(bucket_of(known)).filter(pl.col("key") == key))


@settings(max_examples=examples(60), deadline=None)
@given(situations())
def test_counts_of_copies_and_places_agree(known: dict[str, Any]) -> None:
    judged = judge(bucket_of(known))

    assert judged["key_hash"].is_sorted() and judged["key_hash"].is_unique().all()
    with_copies = judged.filter(~pl.col("key").is_in(known["handed_over"]))
    assert (with_copies["source_copies"] == with_copies["source_places"].list.len()).all()
    assert (judged["elsewhere_copies"] == judged["elsewhere_places"].list.len()).all()
    assert not judged.filter(~pl.col("in_source"), pl.col("verdict").is_in(["matched", "missing", "pending"])).height


@settings(max_examples=examples(60), deadline=None)
@given(situations(), situations(), st.data())
def test_what_is_the_same_has_the_same_verdicts(
    known: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(list(known)))
    mixed = known | {name: other[name]}

    if bucket_of(known).is_same_as(bucket_of(mixed)):
        assert judge(bucket_of(known)).equals(judge(bucket_of(mixed)))
    else:
        assert known[name] != other[name]


@pytest.mark.parametrize("name", [item.name for item in fields(BucketInput)])
def test_no_part_of_what_is_known_may_differ(name: str) -> None:
    known = bucket([one("a", 0)], [one("a", 0)])
    value = getattr(known, name)
    changed: Any = {str: "another", bool: True}.get(type(value))
    if isinstance(value, pl.DataFrame):
        changed = pl.concat([value, value]) if len(value) else pl.DataFrame([[None]] * value.width, schema=value.schema)

    assert known.is_same_as(replace(known, **{name: value}))
    assert not known.is_same_as(replace(known, **{name: changed}))


# What each word means, one by one


def test_a_loss_and_a_duplicate_in_one_bucket_do_not_cancel() -> None:
    known = bucket([one("a", 0), one("b", 1)], [one("b", 0), one("b", 1)])

    assert verdicts(known) == {"a": "missing", "b": "duplicate"}


def test_an_aborted_copy_is_neither_proof_of_existence_nor_of_arrival() -> None:
    known = bucket([one("a", 0), one("b", 1, is_aborted=True)], [one("a", 0, is_aborted=True)])

    assert verdicts(known) == {"a": "missing"}


def test_a_replay_counts_as_the_copy_it_stands_for_and_beside_an_original_not_at_all() -> None:
    replay: dict[str, Any] = {"replay_plan": PLANS[0]}
    known = bucket(
        [one("a", 0), one("b", 1)],
        [one("a", 0, **replay), one("b", 1), one("b", 2, **replay)],
        replays=[(PLANS[0], "a"), (PLANS[0], "b")],
    )

    assert verdicts(known) == {"a": "matched", "b": "matched"}


@pytest.mark.parametrize("header", [PLANS[2], PLANS[1], "anything"])
def test_a_forged_lineage_header_hides_no_duplicate(header: str) -> None:
    known = bucket([one("a", 0)], [one("a", 0), one("a", 1, replay_plan=header)], replays=[(PLANS[0], "a")])

    assert verdicts(known) == {"a": "duplicate"}


def test_a_plan_that_wrote_a_key_twice_is_known_by_both_and_by_no_third() -> None:
    replay: dict[str, Any] = {"replay_plan": PLANS[0]}
    written = [(PLANS[0], "a"), (PLANS[0], "a")]
    both = [one("a", 0), one("a", 1, **replay), one("a", 2, **replay)]

    assert verdicts(bucket([one("a", 0)], both, replays=written)) == {"a": "matched"}
    third = [*both, one("a", 3, **replay)]
    assert verdicts(bucket([one("a", 0)], third, replays=written)) == {"a": "duplicate"}


def test_a_header_copied_from_a_real_replay_hides_no_duplicate() -> None:
    replay: dict[str, Any] = {"replay_plan": PLANS[0]}
    known = bucket(
        [one("a", 0)], [one("a", 0), one("a", 1, **replay), one("a", 2, **replay)], replays=[(PLANS[0], "a")]
    )

    assert verdicts(known) == {"a": "duplicate"}


@pytest.mark.parametrize("at", [1, 3], ids=["before the replay", "behind it"])
def test_a_replay_is_known_by_its_position_and_a_copy_with_its_headers_is_a_duplicate(at: int) -> None:
    replay: dict[str, Any] = {"replay_plan": PLANS[0]}
    target = [one("a", 0), one("a", 2, **replay)]

    assert verdicts(bucket([one("a", 0)], target, placed=[(PLANS[0], "a", 2, False)])) == {"a": "matched"}
    target.append(one("a", at, **replay))
    assert verdicts(bucket([one("a", 0)], target, placed=[(PLANS[0], "a", 2, False)])) == {"a": "duplicate"}


def test_a_copy_in_a_window_without_replays_is_a_duplicate_whatever_its_headers_say() -> None:
    elsewhere = [
        {"key": "a", "place": "0:0", "is_replay": False},
        {"key": "a", "place": "0:2", "is_replay": True},
    ]
    known = bucket([], [one("a", 50, replay_plan=PLANS[0])], source_elsewhere=elsewhere[:1], target_elsewhere=elsewhere)

    assert verdicts(known) == {"a": "duplicate"}


@pytest.mark.parametrize(
    ("plan", "key", "offset"),
    [(PLANS[1], "a", 1), (PLANS[0], "b", 1), (PLANS[0], "a", 2)],
    ids=["plan", "key", "place"],
)
def test_a_position_vouches_for_one_plan_and_one_key_alone(plan: str, key: str, offset: int) -> None:
    target = [one("a", 0), one("a", 1, replay_plan=PLANS[0])]

    assert verdicts(bucket([one("a", 0)], target, placed=[(plan, key, offset, False)])) == {"a": "duplicate"}


def test_a_record_that_was_produced_is_the_copy_and_its_late_original_the_second() -> None:
    produced = one("a", 1, replay_plan=PLANS[0])
    placed = [(PLANS[0], "a", 1, True)]

    assert verdicts(bucket([one("a", 0)], [produced], placed=placed)) == {"a": "matched"}
    assert verdicts(bucket([one("a", 0)], [produced, one("a", 2)], placed=placed)) == {"a": "duplicate"}


def test_a_produced_record_in_the_slice_is_judged_with_the_original_of_an_earlier_window() -> None:
    elsewhere = [{"key": "a", "place": "0:7", "is_replay": False}]
    known = bucket(
        [],
        [one("a", 50, replay_plan=PLANS[0])],
        source_elsewhere=elsewhere,
        target_elsewhere=elsewhere,
        placed=[(PLANS[0], "a", 50, True)],
    )

    assert verdicts(known) == {"a": "duplicate"}


def test_a_key_of_another_window_is_not_unexpected() -> None:
    elsewhere = [{"key": "a", "place": "0:7", "is_replay": False}]

    assert verdicts(bucket([], [one("a", 0)], source_elsewhere=elsewhere)) == {}
    assert verdicts(bucket([], [one("a", 0)])) == {"a": "unexpected"}


def test_a_repeat_of_an_earlier_window_is_a_duplicate_where_it_falls() -> None:
    elsewhere = [{"key": "a", "place": "0:7", "is_replay": False}]
    known = bucket([], [one("a", 50)], source_elsewhere=elsewhere, target_elsewhere=elsewhere)

    assert verdicts(known) == {"a": "duplicate"}
    assert judge(known)["elsewhere_places"].to_list() == [["0:7"]]


def test_what_is_not_settled_is_pending_only_while_it_is_absent() -> None:
    known = bucket([one("a", 0), one("b", 1), one("c", 2)], [one("b", 0), one("c", 1), one("c", 2)])

    assert verdicts(replace(known, unsettled=hashed([{"key": key} for key in "abc"], HASHES))) == {
        "a": "pending",
        "b": "matched",
        "c": "duplicate",
    }


def test_a_key_that_was_handed_over_is_judged_though_this_window_does_not_hold_it() -> None:
    seen = [{"key": "c", "place": "0:7", "is_replay": False, "row_hash": OLD}]
    known = bucket([], [one("a", 0), one("c", 1)], handed_over=["a", "b", "c"], source_elsewhere=seen)

    assert verdicts(known) == {"a": "undecidable", "b": "missing", "c": "matched"}
    assert hints(known) == {"a": "source_gone", "b": None, "c": None}


@pytest.mark.parametrize("source_is_topic", [False, True])
def test_a_source_that_has_a_key_with_different_values_is_a_conflict_whatever_the_target_holds(
    source_is_topic: bool,
) -> None:
    rows = [one("a", 0), one("a", 1, NEW), one("b", 2), one("b", 3)]
    for held in (OLD, NEW, NEWER):
        known = bucket(rows, [one("a", 0, held), one("b", 1)], source_is_topic=source_is_topic)
        assert verdicts(known) == {"a": "conflict", "b": "matched"}
        assert hints(known) == {"a": "source_contradicts_itself", "b": None}
    assert verdicts(bucket(rows, [one("b", 1)], source_is_topic=source_is_topic)) == {"a": "missing", "b": "matched"}


def test_elements_of_one_record_contradict_each_other_as_records_do() -> None:
    """A record that has a key twice has it once where both agree; rows that are read twice are one."""
    rows = [one("a", 0), one("a", 0, NEW), one("b", 0), one("b", 0)]
    for held in (OLD, NEW, NEWER):
        known = bucket(rows, [one("a", 0, held), one("b", 1)])
        assert verdicts(known) == {"a": "conflict", "b": "matched"}
        assert hints(known) == {"a": "source_contradicts_itself", "b": None}
    assert judge(bucket(rows, [])).sort("key")["source_copies"].to_list() == [2, 1]


def test_several_rows_of_elements_that_contradict_each_other_are_a_conflict() -> None:
    """Nothing says which of them is right, unless the log had the key before."""
    elements, held = [one("a", 1), one("a", 1, NEW)], [one("a", 0), one("a", 1, NEW)]
    assert verdicts(bucket(elements, held)) == {"a": "conflict"}
    assert verdicts(bucket([*elements, one("a", 2)], held)) == {"a": "conflict"}
    assert verdicts(bucket([one("a", 0), *elements], held)) == {"a": "duplicate"}
    before = {"key": "a", "place": "0:7", "is_replay": False, "row_hash": OLD, "is_later": False}
    assert verdicts(bucket(elements, held, source_elsewhere=[before])) == {"a": "duplicate"}
    assert verdicts(bucket(elements, held, source_elsewhere=[{**before, "is_later": True}])) == {"a": "conflict"}
    assert verdicts(bucket([one("a", 1), one("a", 1)], held)) == {"a": "duplicate"}


def test_a_source_that_had_the_key_before_with_another_value_contradicts_itself() -> None:
    """One that has it later is judged in the later window."""
    before = {"key": "a", "place": "0:7", "is_replay": False, "row_hash": OLD, "is_later": False}
    same, later = before | {"key": "b", "row_hash": NEW}, before | {"key": "c", "is_later": True}
    rows = [one("a", 10, NEW), one("b", 11, NEW), one("c", 12, NEW)]
    known = bucket(rows, [one("a", 0), one("b", 1, NEW), one("c", 2, NEW)], source_elsewhere=[before, same, later])

    assert verdicts(known) == {"a": "conflict", "b": "matched", "c": "matched"}
    assert hints(known)["a"] == "source_contradicts_itself"


def test_a_repeat_of_a_key_whose_rows_in_another_window_contradict_each_other_is_a_duplicate() -> None:
    """The rows were reported in their own window, and are not counted in this one."""
    rows = [
        {"key": "a", "place": f"(0,{row_hash})", "row_hash": row_hash, "is_later": False} for row_hash in (OLD, NEW)
    ]
    known = bucket([], [one("a", 0), one("a", 1)], source_is_topic=False, source_elsewhere=rows)

    assert verdicts(known) == {"a": "duplicate"}


def test_copies_of_both_values_are_a_conflict_of_a_table_and_a_duplicate_of_a_log() -> None:
    """Of a log, what it says first of an event counts; rows of a table have no order that says which is right."""
    rows, target = [one("a", 0), one("a", 1, NEW)], [one("a", 0), one("a", 1, NEW)]

    assert verdicts(bucket(rows, target, source_is_topic=False)) == {"a": "conflict"}
    assert verdicts(bucket(rows, target)) == {"a": "duplicate"}


@pytest.mark.parametrize("partition", [0, 1])
def test_a_wrong_original_beside_a_right_replay_is_a_conflict_wherever_they_lie(partition: int) -> None:
    original, replay = one("a", 9, NEW, partition=partition), one("a", 3, replay_plan=PLANS[0])
    known = bucket([one("a", 0)], [original, replay], placed=[(PLANS[0], "a", 3, False)])

    assert (verdicts(known), hints(known)) == ({"a": "conflict"}, {"a": "target_contradicts_itself"})
    wrong = bucket([one("a", 0, NEWER)], [original, replay], placed=[(PLANS[0], "a", 3, False)])
    assert verdicts(wrong) == {"a": "mismatched"}


def test_a_copy_whose_value_is_not_known_any_more_is_not_known() -> None:
    outside = [{"key": "a", "place": "0:7", "is_replay": False}]
    known = bucket([one("a", 50)], [], target_elsewhere=outside)

    assert (verdicts(known), hints(known)) == ({"a": "undecidable"}, {"a": "unreadable_value"})


def test_a_filter_of_this_hop_leaves_a_copy_out_and_that_of_another_does_not() -> None:
    known = bucket([one("a", 0, excluded_by=[HOP]), one("b", 1, excluded_by=["x→y"])], [])

    assert verdicts(known) == {"b": "missing"}


def test_one_row_of_a_table_that_was_read_twice_counts_once() -> None:
    row = one("a", 0, place="(0,1)")

    assert verdicts(bucket([one("a", 0)], [row, row], target_is_topic=False)) == {"a": "matched"}


def test_two_keys_at_one_place_are_both_kept() -> None:
    """A place is used again after a delete: look-ups see another row where the snapshot saw the first."""
    rows = [one("a", 0, place="(0,1)"), one("b", 1, place="(0,1)")]

    assert verdicts(bucket([one("a", 0), one("b", 1)], rows, target_is_topic=False)) == {"a": "matched", "b": "matched"}


def test_an_index_run_marks_replays_as_the_kernel_does() -> None:
    log = copies([one("a", 3, replay_plan=PLANS[0]), one("a", 1, replay_plan=PLANS[0]), one("a", 0)], True)
    written = {"plan": PLANS[0], "key": "a", "partition": 0, "offset": 1, "is_produced": False}
    marked = mark_replays(log, hashed([written], REPLAYS))

    assert marked.select("offset", "is_replay").rows() == [(0, False), (1, True), (3, False)]


def test_the_absence_of_a_key_that_waited_too_long_counts() -> None:
    keys = [one("young", 0), one("old", 1), one("there", 2), one("lost", 3)]
    waiting = ["young", "old", "there"]
    answers = verdict_by_key(judge, bucket(keys, [one("there", 0)], unsettled=waiting, overdue=["old", "there"]))
    assert answers == {"young": "pending", "old": "missing", "there": "matched", "lost": "missing"}


def test_a_row_is_held_to_its_record_whichever_window_has_that() -> None:
    before = [
        {"key": key, "place": f"0:{at}", "is_replay": False, "is_later": False, "row_hash": OLD}
        for at, key in enumerate(("wrong", "right", "later", "unknown"))
    ]
    before += [{"key": "later", "place": "0:9", "is_replay": False, "is_later": True, "row_hash": NEW}]
    before += [{"key": "unknown", "place": "0:8", "is_replay": False, "is_later": False, "row_hash": None}]
    rows = [one("wrong", 0, NEW), one("right", 1, OLD), one("later", 2, NEW), one("unknown", 3, NEW)]

    assert verdicts(bucket([], rows, source_elsewhere=before, target_is_topic=False)) == {"wrong": "mismatched"}
    assert verdicts(bucket([], rows, source_elsewhere=before)) == {}  # a record that differs may be of another window


def test_a_row_that_no_record_of_a_contradicting_source_explains_is_in_conflict() -> None:
    before = [
        {"key": "a", "place": f"0:{at}", "is_replay": False, "is_later": False, "row_hash": value}
        for at, value in enumerate((OLD, NEWER))
    ]

    known = bucket([], [one("a", 0, NEW)], source_elsewhere=before, target_is_topic=False)
    assert (verdicts(known), hints(known)) == ({"a": "conflict"}, {"a": "source_contradicts_itself"})
