"""Read the findings of a window from the files of its buckets, batch by batch, however many there are."""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice

import polars as pl

from makewhole.compute.frames import FINDINGS
from makewhole.journal.results.handover_keys import Handover
from makewhole.lake.storage import Storage
from makewhole.model.verdict import REPAIRABLE, Cause, Finding, Verdict

_KEPT_NEXT = (
    frozenset({Verdict.UNEXPECTED, Verdict.UNDECIDABLE}),
    frozenset(REPAIRABLE) - {Verdict.UNEXPECTED},
    frozenset({Verdict.ERASED, Verdict.PENDING}),
)
"""The verdicts that no plan needs, in the order in which the journal keeps findings of them: first those of keys that
may have no record, which later windows ask for by name; then gaps that are only reported."""


def first_findings(
    storage: Storage, paths: Sequence[str], most: int, needed: Collection[tuple[str, Verdict]]
) -> Iterator[Finding]:
    """Yield the findings of these files, at most `most` of them: in their order where these are all. Else those that a
    plan needs come first, `needed` by hop and verdict: a plan is of all of them or of nothing."""
    if storage.count_rows(paths) <= most:
        return _findings(storage, paths, pl.lit(value=True))
    is_needed = pl.any_horizontal(
        pl.lit(value=False),
        *((pl.col("hop") == hop) & (pl.col("verdict") == verdict.value) for hop, verdict in needed),
    )
    wanted = [is_needed, *(pl.col("verdict").is_in(sorted(some)) & ~is_needed for some in _KEPT_NEXT)]
    return islice(chain.from_iterable(_findings(storage, paths, condition) for condition in wanted), most)


def _findings(storage: Storage, paths: Sequence[str], condition: pl.Expr) -> Iterator[Finding]:
    for batch in storage.parquet_batches(paths, list(FINDINGS)):
        for row in batch.filter(condition).iter_rows(named=True):
            yield Finding(
                hop=row["hop"],
                key=row["key"],
                key_hash=row["key_hash"],
                verdict=Verdict(row["verdict"]),
                cause=Cause(row["cause"]),
                evidence=json.loads(row["evidence"]),
            )


def pending_keys(storage: Storage, paths: Sequence[str]) -> Iterator[Handover]:
    """Yield every pending key of these files: what the window hands over to the next one."""
    for batch in storage.parquet_batches(paths, ["hop", "key", "key_hash", "verdict", "evidence"]):
        for row in batch.filter(pl.col("verdict") == Verdict.PENDING.value).iter_rows(named=True):
            since = datetime.fromisoformat(json.loads(row["evidence"])["waiting_since"])
            yield Handover(hop=row["hop"], key=row["key"], key_hash=row["key_hash"], since=since)
