"""Judge an upsert hop one key at a time, in plain Python, and draw situations to judge.

State None: absent. So is a key after a version of the source that does not pass the hop's filter: it has left it.
"""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from makewhole.compute.frames import ELSEWHERE, TOPIC_KEYS
from makewhole.compute.judge.judge_copies import BucketInput
from tests.unit.compute.judge.bucket_input import HOP, NEW, OLD, bucket

NAMES = ["a", "b", "c"]


def number_of(copy: dict[str, Any]) -> int:
    return copy["version"] or -1


def ends(copy: dict[str, Any]) -> bool:
    """Return whether a copy is a tombstone without a version: it ends those before it."""
    return copy["is_tombstone"] and copy["version"] is None


def lives(copies: list[dict[str, Any]], of: dict[str, Any]) -> int:
    """Return how often the key was deleted in the partition of a copy, up to it."""
    return sum(ends(c) and c["partition"] == of["partition"] and c["offset"] <= of["offset"] for c in copies)


def newest(copies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the copies that could be the latest: those that no tombstone ended, be it with or without those that one
    in another partition may have ended."""
    last = {c["partition"]: max(lives(copies, o) for o in copies if o["partition"] == c["partition"]) for c in copies}
    left = [copy for copy in copies if lives(copies, copy) == last[copy["partition"]]]
    ended_to = max((copy["age"] for copy in left if ends(copy)), default=-1)
    left = [copy for copy in left if last[copy["partition"]] or copy["age"] >= ended_to]
    sure = [copy for copy in left if last[copy["partition"]] or copy["age"] > ended_to]
    return [*last_ones(left), *(copy for copy in last_ones(sure) if copy not in last_ones(left))]


def has_no_order(copies: list[dict[str, Any]]) -> bool:
    """Return whether one without a version may have come after one with the highest."""

    def may_follow(bare: dict[str, Any], numbered: dict[str, Any]) -> bool:
        if bare["age"] != numbered["age"]:
            return bool(bare["age"] > numbered["age"])
        return bare["partition"] != numbered["partition"] or bool(bare["offset"] > numbered["offset"])

    bare = [copy for copy in copies if copy["version"] is None and not copy["is_tombstone"]]
    top = max((copy["version"] for copy in copies if copy["version"] is not None), default=None)
    numbered = [copy for copy in copies if copy["version"] == top and top is not None]
    return any(may_follow(copy, other) for copy in bare for other in numbered)


def last_ones(copies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last copy of each partition, of those with the highest (number, age); all where none is ordered."""
    if has_no_order(copies):
        return copies
    top = max(((number_of(copy), copy["age"]) for copy in copies), default=None)
    best = [copy for copy in copies if (number_of(copy), copy["age"]) == top]
    return [*{copy["partition"]: copy for copy in sorted(best, key=lambda copy: copy["offset"])}.values()]


def state(copy: dict[str, Any]) -> int | None:
    return None if copy["is_tombstone"] or copy["excluded_by"] else copy["row_hash"]


def oracle(key: str, known: dict[str, Any]) -> str | None:
    """Return the verdict of one key; None if it is not judged."""
    source = [c for c in known["source"] if c["key"] == key and not c["is_aborted"]]
    target = [c for c in known["target"] if c["key"] == key and not c["is_aborted"]]
    beyond = [c for c in known["source_elsewhere"] if c["key"] == key]
    up_to_now = source + [c for c in beyond if c["age"] != 2]
    of_source = newest(up_to_now)
    wanted = {state(copy) for copy in of_source}
    has_left = bool(of_source) and all(copy["excluded_by"] for copy in of_source)
    is_there = any(not copy["excluded_by"] for copy in source) or key in known["handed_over"]
    is_known = is_there or any(not copy["excluded_by"] for copy in beyond)
    number = max((number_of(copy) for copy in of_source), default=-1)

    def is_after(copy: dict[str, Any]) -> bool:
        here = max((lives(source + beyond, c) for c in up_to_now if c["partition"] == copy["partition"]), default=0)
        is_changed = copy["version"] == number and state(copy) not in wanted
        by_number = copy["version"] is None or number < 0 or copy["version"] > number or is_changed
        return copy["age"] == 2 and (by_number or lives(source + beyond, copy) > here)

    after = [copy for copy in beyond if is_after(copy)]
    later = {state(copy) for copy in after}
    numbers = [copy["version"] for copy in after]
    least = min(numbers) if numbers and None not in numbers else -1
    elsewhere = [c for c in known["target_elsewhere"] if c["key"] == key]

    def holds(copies: list[dict[str, Any]]) -> tuple[bool, bool]:
        """Return whether these hold the latest version or a later one: (surely, possibly)."""
        last = newest(copies)
        states = {state(copy) for copy in last} or {None}
        held = max((number_of(copy) for copy in last), default=-1)
        older = states != {None} and 0 < held < number
        is_later = bool(later & states) and not (len(states) == 1 and states != {None} and 0 < held < least)
        has = bool(wanted & states) and not (len(states) == 1 and older)
        if not of_source and states != {None}:
            return is_later and len(states) == 1, True  # its value is not known
        single = len(states) == 1
        return (has and single and len(wanted) == 1) or (is_later and single), has or is_later

    here = {c["place"] for c in target}
    last = newest(target + elsewhere)
    present = {state(copy) for copy in last} or {None}
    fine, maybe = zip(holds(target + [c for c in elsewhere if c["age"] != 2]), holds(target + elsewhere), strict=True)
    is_met = bool(target) and present != {None}
    is_repeated = not known["target_is_topic"] and len(here) > 1
    is_sure = len(wanted) == 1 and len(present) == 1 and not any(maybe) and key not in known["unsettled"]
    is_set_back = is_known and is_met and is_sure and not known["target_is_topic"]
    right = "matched" if is_there else None
    if has_left and (source or is_there or is_set_back) and not (is_repeated and later):
        wrong = "undecidable" if None in present or (later and maybe[1]) else "unexpected"
        return right if any(fine) else "pending" if key in known["unsettled"] else wrong
    if not is_known:
        return "unexpected" if is_met else None
    if is_repeated:
        return "duplicate"
    if not (source or is_there):
        return "mismatched" if is_set_back else None
    if any(fine):
        return right
    if key in known["unsettled"]:
        return "pending"
    is_open = any(has_no_order(copies) and len({state(copy) for copy in copies}) > 1 for copies in (of_source, last))
    return "undecidable" if any(maybe) or is_open else "missing" if present == {None} else "mismatched"


@st.composite
def situations(draw: st.DrawFn) -> dict[str, Any]:
    keys = st.sampled_from(NAMES)

    def log(most: int, age: int, first: int, *, is_source: bool) -> list[dict[str, Any]]:
        return [
            {
                "key": draw(keys),
                "partition": draw(st.integers(0, 1)),
                "offset": offset,
                "row_hash": draw(st.sampled_from([OLD, NEW])),
                "version": draw(st.sampled_from([None, None, 1, 2])),
                "is_tombstone": draw(st.sampled_from([False, False, False, True])),
                "is_aborted": age == 1 and draw(st.sampled_from([False, False, True])),
                "excluded_by": draw(st.sampled_from([[], [], [HOP]])) if is_source else [],
                "age": age,
                "is_later": age == 2,
                "is_replay": False,
            }
            for offset in draw(st.lists(st.integers(first, first + 20), unique=True, max_size=most))
        ]

    def elsewhere(*, is_source: bool) -> list[dict[str, Any]]:
        copies = [*log(2, 0, 0, is_source=is_source), *log(2, 2, 100, is_source=is_source)]
        return [
            copy | {"place": f"{copy['partition']}:{copy['offset']}", "ends_earlier": ends(copy)} for copy in copies
        ]

    target_is_topic = draw(st.booleans())
    target = log(6, 1, 50, is_source=False)
    if not target_is_topic:
        target = [copy | {"is_aborted": False, "is_tombstone": False, "partition": 0} for copy in target]
    return {
        "source": [copy | {"place": f"{copy['partition']}:{copy['offset']}"} for copy in log(6, 1, 50, is_source=True)],
        "target": [copy | {"place": f"{copy['partition']}:{copy['offset']}"} for copy in target],
        "target_is_topic": target_is_topic,
        "source_elsewhere": elsewhere(is_source=True),
        "target_elsewhere": elsewhere(is_source=False) if target_is_topic else [],
        "handed_over": draw(st.lists(keys, unique=True, max_size=1)),
        "unsettled": draw(st.lists(keys, max_size=2)),
    }


def bucket_of(known: dict[str, Any]) -> BucketInput:
    """Return the kernel's input. A table's rows are in the order of their times."""
    wanted = dict(known)
    if not known["target_is_topic"]:
        moments = [datetime.fromtimestamp(copy["offset"], UTC) for copy in known["target"]]
        wanted["target"] = [copy | {"time": at} for copy, at in zip(known["target"], moments, strict=True)]
    kept = {*TOPIC_KEYS, *ELSEWHERE, "key"}
    for name in ("source", "target", "source_elsewhere", "target_elsewhere"):
        wanted[name] = [{field: copy[field] for field in copy if field in kept} for copy in wanted[name]]
    return bucket(**wanted)
