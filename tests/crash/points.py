"""How many points there are, as it was recorded: the enumeration cannot shrink without anybody noticing."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.crash.atlas import Atlas

RECORDED = Path(__file__).with_name("points.json")

Counts = Mapping[str, int]
"""How often each step is made, by its name; there are two points to a step."""


def counted(atlas: Atlas) -> Counts:
    """The steps of an undisturbed run."""
    return dict(sorted(Counter(atlas.start.steps).items()))


def recorded() -> dict[str, dict[str, int]]:
    """By phase; empty when nothing is recorded."""
    found: dict[str, dict[str, int]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def record(phase: str, counts: Counts) -> None:
    """In place of what was recorded for this phase."""
    everything = {**recorded(), phase: dict(counts)} if RECORDED.exists() else {phase: dict(counts)}
    RECORDED.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def complaints(phase: str, counts: Counts) -> Iterator[str]:
    """What is no longer enumerated, and what is not recorded yet."""
    before = recorded().get(phase, {})
    for name in sorted({*before, *counts}):
        was, now = before.get(name, 0), counts.get(name, 0)
        if now < was:
            yield f"{phase}: {name} is {now} times a step and was {was} times: points are no longer enumerated"
        if now > was:
            yield f"{phase}: {name} is {now} times a step and was {was} times: record it, CRASH_ARGS=--crash-record"
