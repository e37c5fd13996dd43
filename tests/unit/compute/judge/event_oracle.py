"""Judge an event hop one key at a time, in plain Python, and draw situations to judge."""

from typing import Any

from hypothesis import strategies as st

from makewhole.compute.judge.judge_copies import BucketInput
from tests.unit.compute.judge.bucket_input import HOP, PLANS, bucket

NAMES = ["a", "b", "c", "d"]


def oracle(key: str, known: dict[str, Any]) -> str | None:
    """Return the verdict of one key; None if it is not judged."""
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
    held = {c["row_hash"] for c in target + outside} - {None}
    others = [c for c in known["source_elsewhere"] if c["key"] == key]
    beyond = {c["row_hash"] for c in others}
    is_set_back = not known["target_is_topic"] and bool(beyond and held) and None not in beyond and not beyond & held
    if not in_source and not (here and (present > 1 or not is_known or is_set_back)):
        return None
    if not is_known:
        return "unexpected"
    if present != 1:
        return "duplicate" if present else "pending" if key in known["unsettled"] else "missing"
    beyond -= {None}
    before = {c["row_hash"] for c in others if not c["is_later"]} - {None}
    known_here = {c["row_hash"] for c in source} - {None}
    values = (known_here | before) if known_here else beyond
    first = min(source, key=lambda copy: (copy["partition"], copy["offset"]), default=None)
    is_first_unknown = first is not None and first["row_hash"] is None and not before
    if len(values) > 1 or (len(held) > 1 and values & held):
        return "conflict"
    if is_first_unknown or not values or not held:
        return "undecidable"
    return "matched" if values & held else "mismatched"


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
                "row_hash": draw(st.sampled_from([1, 1, 2, 2, None])),
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
            "is_later": st.booleans(),
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


def bucket_of(known: dict[str, Any]) -> BucketInput:
    """Return the kernel's input. Places of a table are padded, so that they sort as text like their numbers."""
    wanted = dict(known)
    if not known["target_is_topic"]:
        wanted["target"] = [{**copy, "place": f"({copy['offset']:04d},1)"} for copy in known["target"]]
    return bucket(**wanted)
