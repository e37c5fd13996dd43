"""Send how a window ended, and how far a pipeline is proven, as metrics of Airflow's own: wherever its section
`[metrics]` sends them, OpenTelemetry or StatsD, or nowhere. No key and no value is in them.

All are gauges: each task is a process of its own, in which a counter would begin again.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from makewhole.model.verdict import GAPS, HopCounts, Verdict

if TYPE_CHECKING:
    from makewhole.journal.certificates import Watermark
    from makewhole.model.self_check.score import Score

logger = logging.getLogger(__name__)
_PREFIX = "makewhole"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A number with the labels that distinguish it."""

    name: str
    value: float
    tags: Mapping[str, str]


def of_window(
    pipeline: str, counts: Mapping[str, HopCounts], *, is_certified: bool, older_open: int
) -> Sequence[Measured]:
    """Return how a window ended: certified (1 or 0), keys (by hop and verdict), gaps (keys), open_windows.

    `counts` are the keys of each hop, after the repair where there was one; `older_open` is how many windows before it
    are open.
    """
    tags = {"pipeline": pipeline}
    gaps = sum(getattr(hop, verdict.value) for hop in counts.values() for verdict in GAPS)
    return [
        Measured(name="certified", value=int(is_certified), tags=tags),
        *_keys(pipeline, counts),
        Measured(name="gaps", value=gaps, tags=tags),
        Measured(name="open_windows", value=older_open + (not is_certified), tags=tags),
    ]


def _keys(pipeline: str, counts: Mapping[str, HopCounts]) -> Iterator[Measured]:
    for hop, hop_counts in sorted(counts.items()):
        for verdict in Verdict:
            tags = {"pipeline": pipeline, "hop": hop.replace("→", "-"), "verdict": verdict.value}
            yield Measured(name="keys", value=getattr(hop_counts, verdict.value), tags=tags)


def of_watermark(pipeline: str, watermark: "Watermark | None", now: datetime) -> Sequence[Measured]:
    """Return how far a pipeline is proven: verified_window (its number), verified_until (seconds since 1970),
    verified_age_seconds. Where not even its first window is proven: the number 0 alone."""
    tags, window = {"pipeline": pipeline}, (watermark.window if watermark else None) or 0
    until = watermark.until if watermark else None
    measured = [Measured(name="verified_window", value=window, tags=tags)]
    if until is not None:
        measured += [
            Measured(name="verified_until", value=until.timestamp(), tags=tags),
            Measured(name="verified_age_seconds", value=(now - until).total_seconds(), tags=tags),
        ]
    return measured


def of_self_check(pipeline: str, score: "Score") -> Sequence[Measured]:
    """Return how a round of a self-check ended: self_check_green (1 or 0), self_check_recall and self_check_precision
    (0..1), and how many faults were planted, found, missed, invented, and are left after the repair."""
    numbers = {"green": int(score.is_green), **score.numbers}
    tags = {"pipeline": pipeline}
    return [Measured(name=f"self_check_{name}", value=value, tags=tags) for name, value in numbers.items()]


def send(measured: Sequence[Measured]) -> None:
    """Hand numbers to Airflow, each as `makewhole.NAME`. Whatever goes wrong there is logged alone."""
    from airflow.sdk.observability import stats

    try:
        for number in measured:
            stats.gauge(f"{_PREFIX}.{number.name}", number.value, tags=dict(number.tags))
    except Exception as error:  # of the backend: it may not change the end of a task
        logger.warning("metrics were not sent: %s", type(error).__name__)
