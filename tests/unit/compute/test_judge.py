"""The kernel against an oracle that looks at one key at a time, in plain Python."""

import random
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, KEYS, REPLAYS, TOPIC_KEYS, empty
from makewhole.compute.judge import BucketInput, judge, mark_replays
from makewhole.compute.keys import with_hash
from makewhole.model.errors import CorruptionError

pytestmark = pytest.mark.unit

HOP = "source→target"
NAMES = ["a", "b", "c", "d"]
PLANS = ["demo-1-000000000001", "demo-2-000000000002", "demo-9-00000000dead"]


def hashed(rows: list[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    """Rows with a `key` → a frame in the schema, hashed, the key dropped unless the schema has it."""
    wanted = {"key": pl.String, **schema}
    frame = with_hash(pl.DataFrame(rows, schema={name: kind for name, kind in wanted.items() if name not in HASH}))
    return frame.select(*schema)


def copies(rows: list[dict[str, Any]], is_topic: bool) -> pl.DataFrame:
    filled = [
        {
            "row_hash": 1,
            "excluded_by": [],
            "place": f"{row['partition']}:{row['offset']}",
            "is_aborted": False,
            "replay_plan": None,
            **row,
        }
        for row in rows
    ]
    return hashed(filled, TOPIC_KEYS if is_topic else KEYS)


def bucket(
    source: list[dict[str, Any]],
    target: list[dict[str, Any]],
    *,
    source_is_topic: bool = True,
    target_is_topic: bool = True,
    source_elsewhere: list[dict[str, Any]] | None = None,
    target_elsewhere: list[dict[str, Any]] | None = None,
    handed_over: list[str] | None = None,
    unsettled: list[str] | None = None,
    replays: list[tuple[str, str]] | None = None,
) -> BucketInput:
    return BucketInput(
        hop=HOP,
        source=copies(source, source_is_topic),
        target=copies(target, target_is_topic),
        source_elsewhere=hashed(source_elsewhere or [], ELSEWHERE),
        target_elsewhere=hashed(target_elsewhere or [], ELSEWHERE),
        handed_over=hashed([{"key": key} for key in handed_over or []], {"key": pl.String} | HASHES),
        unsettled=hashed([{"key": key} for key in unsettled or []], HASHES),
        replays=hashed([{"plan": plan, "key": key} for plan, key in replays or []], REPLAYS),
    )


def verdicts(known: BucketInput) -> dict[str, str]:
    return dict(judge(known).select("key", "verdict").rows())


# The oracle


def oracle(key: str, known: dict[str, Any]) -> str | None:
    """The verdict of one key; None when nothing has to be said of it."""
    source = [c for c in known["source"] if c["key"] == key and not c["is_aborted"] and HOP not in c["excluded_by"]]
    target = [c for c in known["target"] if c["key"] == key and not c["is_aborted"]]
    in_source = bool(source) or key in known["handed_over"]
    of_plan: dict[str, list[tuple[int, int]]] = {}
    for copy in target:
        of_plan.setdefault(copy["replay_plan"], []).append((copy["offset"], copy["partition"]))
    ours = [
        sorted(of_plan[copy["replay_plan"]]).index((copy["offset"], copy["partition"]))
        < known["replays"].count((copy["replay_plan"], key))
        and known["target_is_topic"]
        for copy in target
    ]
    outside = [c for c in known["target_elsewhere"] if c["key"] == key]
    here = ours.count(False)
    originals = here + sum(not c["is_replay"] for c in outside)
    replayed = sum(ours) + sum(c["is_replay"] for c in outside)
    present = originals if originals else min(replayed, 1)
    is_known = in_source or any(c["key"] == key for c in known["source_elsewhere"])
    if not in_source and not (here and (present > 1 or not is_known)):
        return None
    if not is_known:
        return "unexpected"
    if present != 1:
        return "duplicate" if present else "pending" if key in known["unsettled"] else "missing"
    others = [c["row_hash"] for c in sorted(outside, key=lambda c: c["place"]) if c["row_hash"] is not None]
    first = min(target, key=lambda c: (c["partition"], c["offset"]))["row_hash"] if target else (others or [None])[0]
    values = {c["row_hash"] for c in source}
    return "mismatched" if values and first is not None and first not in values else "matched"


@st.composite
def situations(draw: st.DrawFn) -> dict[str, Any]:
    keys = st.sampled_from(NAMES)

    def log(most: int) -> list[dict[str, Any]]:
        offsets = draw(st.lists(st.integers(0, 40), unique=True, max_size=most))
        return [
            {
                "key": draw(keys),
                "partition": draw(st.integers(0, 2)),
                "offset": offset,
                "row_hash": draw(st.integers(1, 2)),
                "is_aborted": draw(st.sampled_from([False, False, False, True])),
                "replay_plan": draw(st.sampled_from([None, None, *PLANS])),
                "excluded_by": draw(st.sampled_from([[], [], [HOP], ["another→hop"]])),
            }
            for offset in offsets
        ]

    elsewhere = st.fixed_dictionaries(
        {
            "key": keys,
            "place": st.integers(50, 90).map(lambda n: f"0:{n}"),
            "is_replay": st.booleans(),
            "row_hash": st.sampled_from([None, 1, 2]),
        }
    )
    target_is_topic = draw(st.booleans())
    target = log(10)
    source = log(8)
    if not target_is_topic:
        target = [{**copy, "is_aborted": False, "partition": 0} for copy in target]
    return {
        "source": source,
        "target": target,
        "target_is_topic": target_is_topic,
        "source_elsewhere": draw(st.lists(elsewhere, max_size=3)),
        "target_elsewhere": draw(st.lists(elsewhere, max_size=4)),
        "handed_over": draw(st.lists(keys, unique=True, max_size=2)),
        "unsettled": draw(st.lists(keys, max_size=3)),
        "replays": draw(st.lists(st.tuples(st.sampled_from(PLANS[:2]), keys), max_size=4)),
    }


def padded(known: dict[str, Any]) -> BucketInput:
    """Places of tables as text sort like their numbers only when padded."""
    wanted = dict(known)
    if not known["target_is_topic"]:
        wanted["target"] = [{**copy, "place": f"({copy['offset']:04d},1)"} for copy in known["target"]]
    return bucket(**wanted)


@settings(max_examples=250, deadline=None)
@given(situations())
def test_every_verdict_is_the_one_of_the_oracle(known: dict[str, Any]) -> None:
    expected = {key: verdict for key in NAMES if (verdict := oracle(key, known)) is not None}

    assert verdicts(padded(known)) == expected


@settings(max_examples=60, deadline=None)
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(known: dict[str, Any], chance: random.Random) -> None:
    first = judge(padded(known))
    shuffled = {
        name: chance.sample(value, len(value)) if isinstance(value, list) else value for name, value in known.items()
    }

    assert judge(padded(shuffled)).equals(first)


@settings(max_examples=60, deadline=None)
@given(situations(), st.sampled_from(NAMES))
def test_a_key_is_judged_the_same_alone_and_among_others(known: dict[str, Any], key: str) -> None:
    alone = {
        name: [item for item in value if (item["key"] if isinstance(item, dict) else item) == key]
        if isinstance(value, list) and name != "replays"
        else value
        for name, value in known.items()
    }

    assert judge(padded(alone)).equals(judge(padded(known)).filter(pl.col("key") == key))


@settings(max_examples=60, deadline=None)
@given(situations())
def test_counts_of_copies_and_places_agree(known: dict[str, Any]) -> None:
    judged = judge(padded(known))

    assert judged["key_hash"].is_sorted() and judged["key_hash"].is_unique().all()
    with_copies = judged.filter(~pl.col("key").is_in(known["handed_over"]))
    assert (with_copies["source_copies"] == with_copies["source_places"].list.len()).all()
    assert (judged["elsewhere_copies"] == judged["elsewhere_places"].list.len()).all()
    assert not judged.filter(~pl.col("in_source"), pl.col("verdict").is_in(["matched", "missing", "pending"])).height


# What each word means, one by one


def one(key: str, offset: int, **more: Any) -> dict[str, Any]:
    return {"key": key, "partition": 0, "offset": offset, **more}


def test_a_loss_and_a_duplicate_in_one_bucket_do_not_cancel() -> None:
    known = bucket([one("a", 0), one("b", 1)], [one("b", 0), one("b", 1)])

    assert verdicts(known) == {"a": "missing", "b": "duplicate"}


def test_an_aborted_copy_is_neither_proof_of_existence_nor_of_arrival() -> None:
    known = bucket([one("a", 0), one("b", 1, is_aborted=True)], [one("a", 0, is_aborted=True)])

    assert verdicts(known) == {"a": "missing"}


def test_a_replay_counts_as_the_copy_it_stands_for_and_beside_an_original_not_at_all() -> None:
    replay = {"replay_plan": PLANS[0]}
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
    replay = {"replay_plan": PLANS[0]}
    written = [(PLANS[0], "a"), (PLANS[0], "a")]
    both = [one("a", 0), one("a", 1, **replay), one("a", 2, **replay)]

    assert verdicts(bucket([one("a", 0)], both, replays=written)) == {"a": "matched"}
    third = [*both, one("a", 3, **replay)]
    assert verdicts(bucket([one("a", 0)], third, replays=written)) == {"a": "duplicate"}


def test_a_header_copied_from_a_real_replay_hides_no_duplicate() -> None:
    replay = {"replay_plan": PLANS[0]}
    known = bucket(
        [one("a", 0)], [one("a", 0), one("a", 1, **replay), one("a", 2, **replay)], replays=[(PLANS[0], "a")]
    )

    assert verdicts(known) == {"a": "duplicate"}


def test_a_key_of_another_window_is_no_stranger() -> None:
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
    known = bucket([], [one("a", 0)], handed_over=["a", "b"])

    assert verdicts(known) == {"a": "matched", "b": "missing"}


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


def test_nothing_gives_nothing() -> None:
    judged = judge(BucketInput(hop=HOP, source=empty(KEYS), target=empty(TOPIC_KEYS)))

    assert judged.is_empty()


def test_two_keys_with_one_hash_stop_everything() -> None:
    source, target = copies([one("a", 0)], True), copies([one("a", 0)], True)
    forged = target.with_columns(pl.lit("b").alias("key"))

    with pytest.raises(CorruptionError, match="two different business keys share one 128-bit hash"):
        judge(BucketInput(hop=HOP, source=source, target=forged))


def test_an_index_run_marks_replays_as_the_kernel_does() -> None:
    log = copies([one("a", 3, replay_plan=PLANS[0]), one("a", 1, replay_plan=PLANS[0]), one("a", 0)], True)
    marked = mark_replays(log, hashed([{"plan": PLANS[0], "key": "a"}], REPLAYS))

    assert marked.select("offset", "is_replay").rows() == [(0, False), (1, True), (3, False)]
