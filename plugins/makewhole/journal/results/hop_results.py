"""Read and write the counts of hops, and what was written with them, of a window's two stages. A topic that no hop
joins and that is judged has a result by its name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, single_value, statements_of

_run = statements_of("hop_result")

RECONCILED, VERIFIED = "reconciled", "verified"


@dataclass(frozen=True, kw_only=True)
class HopResult:
    """The counts of a hop at a stage. `files`: the summary, and what was written, by paths below the storage root."""

    hop: str
    counts: HopCounts
    digest: str
    files: Mapping[str, Any] = field(default_factory=dict)


def lock_results(journal: PgConnection, window: Window) -> None:
    """Wait until no other process commits results of this revision; held until the transaction ends."""
    _run(journal, "lock_results", **scope(window))


def commit_results(journal: PgConnection, window: Window, stage: str, results: Iterable[HopResult]) -> None:
    """Replace the results of a stage."""
    _run(journal, "delete_results", **scope(window), stage=stage)
    for result in results:
        _run(
            journal,
            "insert_result",
            **scope(window),
            hop=result.hop,
            stage=stage,
            counts=Json(vars(result.counts)),
            digest=result.digest,
            files=Json(result.files),
        )


def results(journal: PgConnection, window: Window, stage: str = RECONCILED) -> dict[str, HopResult]:
    """Return the results of a stage by hop, or topic alone; empty when the stage has not committed."""
    return {row.hop: record(HopResult, row) for row in _run(journal, "results", **scope(window), stage=stage)}


def most_window_keys(pipeline: Pipeline, results: Mapping[str, HopResult]) -> int:
    """Return the number of keys that limits are a share of: those of the hop that has most."""
    of_hops = (results[hop.name] for hop in pipeline.hops if hop.name in results)
    return max((result.counts.window_keys for result in of_hops), default=0)


def hops_before(journal: PgConnection, window: Window) -> list[tuple[str, str]]:
    """Return the hops that windows before one compared, as the names of their points."""
    rows = _run(journal, "hops_before", pipeline=window.pipeline, number=window.number)
    ends = (name.partition("→") for (name,) in rows)
    return [(source, target) for source, _, target in ends]


def first_of_hop(journal: PgConnection, pipeline: str, hop: str) -> int | None:
    """Return the number of the first window that compared a hop; None before there is one."""
    number: int | None = single_value(_run(journal, "first_of_hop", pipeline=pipeline, hop=hop))
    return number
