"""Judge an upsert hop one key at a time, in plain Python, and draw situations to judge.

What could be the latest version is a set of (partition, state); state None: absent. So is a key after a version of the
source that does not pass the hop's filter: it has left it.
"""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from makewhole.compute.frames import ELSEWHERE, TOPIC_KEYS
from makewhole.compute.judge.judge_copies import BucketInput
from tests.unit.compute.judge.bucket_input import HOP, NEW, OLD, bucket

NAMES = ["a", "b", "c"]


def newest(found: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return by partition the copy that could be the latest, by (number, age, offset); numbers order all partitions."""
    top = max(((copy["version"] or -1, copy["age"]) for copy in found), default=None)
    best = [copy for copy in found if (copy["version"] or -1, copy["age"]) == top]
    return {copy["partition"]: copy for copy in sorted(best, key=lambda copy: copy["offset"])}


def state(copy: dict[str, Any]) -> int | None:
    return None if copy["is_tombstone"] or copy["excluded_by"] else copy["row_hash"]


def oracle(key: str, known: dict[str, Any]) -> str | None:
    """Return the verdict of one key; None if it is not judged."""
    source = [c for c in known["source"] if c["key"] == key and not c["is_aborted"]]
    target = [c for c in known["target"] if c["key"] == key and not c["is_aborted"]]
    of_source = newest(source)
    wanted = {state(copy) for copy in of_source.values()}
    number = max((copy["version"] or -1 for copy in of_source.values()), default=-1)
    has_left = bool(of_source) and all(copy["excluded_by"] for copy in of_source.values())
    is_there = any(not copy["excluded_by"] for copy in source) or key in known["handed_over"]
    beyond = [c for c in known["source_elsewhere"] if c["key"] == key]
    later = {state(c) for c in beyond if (c["version"] > number if c["version"] and number > 0 else c["age"] == 2)}
    elsewhere = [c for c in known["target_elsewhere"] if c["key"] == key]

    def holds(found: list[dict[str, Any]]) -> tuple[bool, bool]:
        """Tell whether these hold the latest version or a later one: (surely, possibly)."""
        last = newest(found)
        states = {state(copy) for copy in last.values()} or {None}
        older = states != {None} and any(0 < (copy["version"] or -1) < number for copy in last.values())
        has = bool(wanted & states) and not (len(states) == 1 and older)
        if not source and states != {None}:
            return bool(later & states) and len(states) == 1, True  # its value is not known
        single = len(states) == 1
        return (has and single and len(wanted) == 1) or (bool(later & states) and single), has or bool(later & states)

    here = {c["place"] for c in target}
    present = {state(copy) for copy in newest(target + elsewhere).values()} or {None}
    fine, maybe = zip(holds(target + [c for c in elsewhere if c["age"] != 2]), holds(target + elsewhere), strict=True)
    is_repeated = not known["target_is_topic"] and len(here) > 1
    if has_left and not (is_repeated and later):
        wrong = "undecidable" if None in present or (later and maybe[1]) else "unexpected"
        right = "matched" if is_there else None
        return right if any(fine) else "pending" if key in known["unsettled"] else wrong
    if not is_there:
        if any(not copy["excluded_by"] for copy in beyond):
            return "duplicate" if is_repeated else None
        return "unexpected" if has_left or (target and present != {None}) else None
    if is_repeated:
        return "duplicate"
    if any(fine):
        return "matched"
    if key in known["unsettled"]:
        return "pending"
    return "undecidable" if any(maybe) else "missing" if present == {None} else "mismatched"


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
        found = [*log(2, 0, 0, is_source=is_source), *log(2, 2, 100, is_source=is_source)]
        return [copy | {"place": f"{copy['partition']}:{copy['offset']}"} for copy in found]

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
