"""Record how many points there are: the enumeration cannot shrink without anybody noticing.

Two things are written down: the steps of each phase, by name, and how many points each kind of fault was tried at, once
for the whole enumeration and once for the short one.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.crash.states.state_graph import StateGraph

RECORDED = Path(__file__).with_name("points.json")

Counts = Mapping[str, int]
"""How often each step is made, by its name, two points to a step; or the points of each kind of fault."""

_HINT = "record it, CRASH_ARGS=--crash-record"


def counted(graph: StateGraph) -> Counts:
    """Count the steps of an undisturbed run, by name."""
    return dict(sorted(Counter(graph.start.steps).items()))


def recorded(section: str) -> Counts:
    """Return the steps of a phase, or the points of the `all` or the `short` enumeration; empty when nothing is
    recorded."""
    return _everything().get(section, {})


def record(section: str, counts: Counts, *, is_part: bool = False) -> None:
    """Put counts in place of what was recorded there; a part leaves the rest of it."""
    everything = _everything()
    everything[section] = dict(sorted({**(everything.get(section, {}) if is_part else {}), **counts}.items()))
    text = json.dumps(dict(sorted(everything.items())), indent=1, ensure_ascii=False)
    RECORDED.write_text(text + "\n", encoding="utf-8")


def complaints(section: str, counts: Counts) -> Iterator[str]:
    """Yield what is no longer enumerated, and what is not recorded yet."""
    before = recorded(section)
    for name in sorted({*before, *counts}):
        was, now = before.get(name, 0), counts.get(name, 0)
        if now < was:
            yield f"{section}: {name}: {now} and was {was}: points are no longer enumerated"
        if now > was:
            yield f"{section}: {name}: {now} and was {was}: {_HINT}"


def _everything() -> dict[str, dict[str, int]]:
    if not RECORDED.exists():
        return {}
    steps_of_points: dict[str, dict[str, int]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return steps_of_points
