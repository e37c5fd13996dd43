"""Read the findings of a window from the files of its buckets, batch by batch, however many there are."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

import polars as pl

from makewhole.compute.frames import FINDINGS
from makewhole.journal.window_results import Handover
from makewhole.lake.storage import Storage
from makewhole.model.verdict import Cause, Finding, Verdict


def first_findings(storage: Storage, paths: Sequence[str], most: int) -> Iterator[Finding]:
    """Yield the findings of these files in their order, at most `most` of them."""
    return islice(_findings(storage, paths), most)


def _findings(storage: Storage, paths: Sequence[str]) -> Iterator[Finding]:
    for batch in storage.parquet_batches(paths, list(FINDINGS)):
        for row in batch.iter_rows(named=True):
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
