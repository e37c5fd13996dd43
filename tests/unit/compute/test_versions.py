"""The kernel of upsert hops against an oracle that looks at one key at a time, in plain Python."""

import random
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, JUDGED, KEYS, REPLAYS, TOPIC_KEYS, empty
from makewhole.compute.judge import BucketInput
from makewhole.compute.keys import with_hash
from makewhole.compute.versions import judge_versions
from makewhole.model.errors import CorruptionError

pytestmark = pytest.mark.unit

HOP = "source→target"
NAMES = ["a", "b", "c"]
OLD, NEW, NEWER = 11, 12, 13


def hashed(rows: list[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    wanted = {"key": pl.String, **schema}
    frame = with_hash(pl.DataFrame(rows, schema={name: kind for name, kind in wanted.items() if name not in HASH}))
    return frame.select(*schema)


def copies(rows: list[dict[str, Any]], is_topic: bool) -> pl.DataFrame:
    usual: dict[str, Any] = {"row_hash": OLD, "excluded_by": [], "is_aborted": False, "partition": 0}
    filled = [usual | {"place": f"{row.get('partition', 0)}:{row['offset']}"} | row for row in rows]
    return hashed(filled, TOPIC_KEYS if is_topic else KEYS)


def bucket(
    source: list[dict[str, Any]],
    target: list[dict[str, Any]],
    *,
    target_is_topic: bool = True,
    source_is_topic: bool = True,
    source_elsewhere: list[dict[str, Any]] | None = None,
    target_elsewhere: list[dict[str, Any]] | None = None,
    handed_over: list[str] | None = None,
    unsettled: list[str] | None = None,
) -> BucketInput:
    return BucketInput(
        hop=HOP,
        source=copies(source, source_is_topic),
        target=copies(target, target_is_topic),
        source_elsewhere=hashed(source_elsewhere or [], ELSEWHERE),
        target_elsewhere=hashed(target_elsewhere or [], ELSEWHERE),
        handed_over=hashed([{"key": key} for key in handed_over or []], {"key": pl.String} | HASHES),
        unsettled=hashed([{"key": key} for key in unsettled or []], HASHES),
        replays=empty(REPLAYS),
    )


def verdicts(known: BucketInput) -> dict[str, str]:
    return dict(judge_versions(known).select("key", "verdict").rows())


def hints(known: BucketInput) -> dict[str, str | None]:
    return dict(judge_versions(known).select("key", "hint").rows())


# The oracle: what could be the latest is a set of (partition, state); state None: absent


def newest(found: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Per partition the copy that could be the latest, of (number, age, offset); a number orders all partitions."""
    top = max(((copy["version"] or -1, copy["age"]) for copy in found), default=None)
    best = [copy for copy in found if (copy["version"] or -1, copy["age"]) == top]
    return {copy["partition"]: copy for copy in sorted(best, key=lambda copy: copy["offset"])}


def state(copy: dict[str, Any]) -> int | None:
    return None if copy["is_tombstone"] else copy["row_hash"]


def oracle(key: str, known: dict[str, Any]) -> str | None:
    """The verdict of one key; None when nothing has to be said of it."""
    source = [c for c in known["source"] if c["key"] == key and not c["is_aborted"] and not c["excluded_by"]]
    target = [c for c in known["target"] if c["key"] == key and not c["is_aborted"]]
    of_source = newest(source)
    wanted = {state(copy) for copy in of_source.values()}
    number = max((copy["version"] or -1 for copy in of_source.values()), default=-1)
    beyond = [c for c in known["source_elsewhere"] if c["key"] == key]
    later = {state(c) for c in beyond if (c["version"] > number if c["version"] and number > 0 else c["age"] == 2)}
    elsewhere = [c for c in known["target_elsewhere"] if c["key"] == key]

    def holds(found: list[dict[str, Any]]) -> tuple[bool, bool]:
        """Surely and perhaps the latest, or a later one."""
        last = newest(found)
        states = {state(copy) for copy in last.values()} or {None}
        older = states != {None} and any(0 < (copy["version"] or -1) < number for copy in last.values())
        has = bool(wanted & states) and not (len(states) == 1 and older)
        if not source and states != {None}:
            return True, True  # its value is not known
        single = len(states) == 1
        return (has and single and len(wanted) == 1) or (bool(later & states) and single), has or bool(later & states)

    here = {c["place"] for c in target}
    present = {state(copy) for copy in newest(target + elsewhere).values()} or {None}
    if not (source or key in known["handed_over"]):
        if beyond:
            return "duplicate" if not known["target_is_topic"] and len(here) > 1 else None
        return "unexpected" if target and present != {None} else None
    if not known["target_is_topic"] and len(here) > 1:
        return "duplicate"
    fine, maybe = zip(holds(target + [c for c in elsewhere if c["age"] != 2]), holds(target + elsewhere), strict=True)
    if any(fine):
        return "matched"
    if key in known["unsettled"]:
        return "pending"
    return "undecidable" if any(maybe) else "missing" if present == {None} else "mismatched"


@st.composite
def situations(draw: st.DrawFn) -> dict[str, Any]:
    keys = st.sampled_from(NAMES)

    def log(most: int, age: int, first: int) -> list[dict[str, Any]]:
        return [
            {
                "key": draw(keys),
                "partition": draw(st.integers(0, 1)),
                "offset": offset,
                "row_hash": draw(st.sampled_from([OLD, NEW])),
                "version": draw(st.sampled_from([None, None, 1, 2])),
                "is_tombstone": draw(st.sampled_from([False, False, False, True])),
                "is_aborted": age == 1 and draw(st.sampled_from([False, False, True])),
                "excluded_by": draw(st.sampled_from([[], [], [HOP]])) if age == 1 else [],
                "age": age,
                "is_later": age == 2,
                "is_replay": False,
            }
            for offset in draw(st.lists(st.integers(first, first + 20), unique=True, max_size=most))
        ]

    def elsewhere() -> list[dict[str, Any]]:
        found = [*log(2, 0, 0), *log(2, 2, 100)]
        return [copy | {"place": f"{copy['partition']}:{copy['offset']}"} for copy in found]

    target_is_topic = draw(st.booleans())
    target = log(6, 1, 50)
    if not target_is_topic:
        target = [copy | {"is_aborted": False, "is_tombstone": False, "partition": 0} for copy in target]
    return {
        "source": [copy | {"place": f"{copy['partition']}:{copy['offset']}"} for copy in log(6, 1, 50)],
        "target": [copy | {"place": f"{copy['partition']}:{copy['offset']}"} for copy in target],
        "target_is_topic": target_is_topic,
        "source_elsewhere": elsewhere(),
        "target_elsewhere": elsewhere() if target_is_topic else [],
        "handed_over": draw(st.lists(keys, unique=True, max_size=1)),
        "unsettled": draw(st.lists(keys, max_size=2)),
    }


def padded(known: dict[str, Any]) -> BucketInput:
    """A table's rows are in the order of their times."""
    wanted = dict(known)
    if not known["target_is_topic"]:
        moments = [datetime.fromtimestamp(copy["offset"], UTC) for copy in known["target"]]
        wanted["target"] = [copy | {"time": at} for copy, at in zip(known["target"], moments, strict=True)]
    kept = {*TOPIC_KEYS, *ELSEWHERE, "key"}
    for name in ("source", "target", "source_elsewhere", "target_elsewhere"):
        wanted[name] = [{field: copy[field] for field in copy if field in kept} for copy in wanted[name]]
    return bucket(**wanted)


@settings(max_examples=400, deadline=None)
@given(situations())
def test_every_verdict_is_the_one_of_the_oracle(known: dict[str, Any]) -> None:
    expected = {key: verdict for key in NAMES if (verdict := oracle(key, known)) is not None}

    assert verdicts(padded(known)) == expected


@settings(max_examples=60, deadline=None)
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(known: dict[str, Any], chance: random.Random) -> None:
    first = judge_versions(padded(known))
    shuffled = {
        name: chance.sample(value, len(value)) if isinstance(value, list) else value for name, value in known.items()
    }

    assert dict(first.schema) == JUDGED
    assert judge_versions(padded(shuffled)).equals(first)


# What each word means, one by one


def one(key: str, offset: int, row_hash: int = OLD, **more: Any) -> dict[str, Any]:
    return {"key": key, "offset": offset, "row_hash": row_hash, **more}


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


def test_a_tombstone_of_a_key_that_the_source_never_had_is_no_stranger() -> None:
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


def test_what_came_to_the_target_later_mends_the_past_and_does_not_spoil_it() -> None:
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
    alike = [one("a", 0, NEW, partition=0), one("a", 0, NEW, partition=1)]
    assert verdicts(bucket(alike, [one("a", 0, NEW)], target_is_topic=False)) == {"a": "matched"}


def test_rows_of_a_ledger_are_in_the_order_of_their_times() -> None:
    rows = [
        one("a", 0, NEW, place="(0,1)", time=datetime(2025, 1, 2, tzinfo=UTC)),
        one("a", 0, OLD, place="(0,2)", time=datetime(2025, 1, 1, tzinfo=UTC)),
    ]

    assert verdicts(bucket(rows, [one("a", 0, NEW)], source_is_topic=False)) == {"a": "matched"}
    at_once = [row | {"time": rows[0]["time"]} for row in rows]
    assert verdicts(bucket(at_once, [one("a", 0, NEW)], source_is_topic=False)) == {"a": "undecidable"}


def test_a_value_that_an_old_index_does_not_know_is_not_held_against_the_key() -> None:
    run = [{"key": "a", "place": "0:7", "is_replay": False}]

    assert verdicts(bucket([one("a", 90)], [], target_elsewhere=run)) == {"a": "matched"}


def test_two_keys_with_one_hash_stop_everything() -> None:
    forged = copies([one("a", 0)], True).with_columns(pl.lit("b").alias("key"))

    with pytest.raises(CorruptionError, match="two different business keys share one 128-bit hash"):
        judge_versions(BucketInput(hop=HOP, source=copies([one("a", 0)], True), target=forged))


def test_nothing_gives_nothing() -> None:
    assert judge_versions(BucketInput(hop=HOP, source=empty(KEYS), target=empty(TOPIC_KEYS))).is_empty()
