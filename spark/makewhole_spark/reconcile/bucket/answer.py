"""Define the answer of a judged bucket."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from makewhole.compute.frames import HASHES, Schema
from makewhole.model.verdict import HopCounts
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.window.consumer_groups import Unreached

MAYBE_MET: Schema = HASHES | {"met_from": pl.Datetime("us", "UTC")}
"""Keys that a store lacks, each with the earliest time of the rows by which a window before may have met it."""


@dataclass(frozen=True, kw_only=True)
class KeptExceptions:
    """Hold what the first pass of a bucket found: of the clean keys their number, the digest and the numbers of their
    rows; and the files of the copies of all others."""

    clean: int
    digest: int
    source_rows: int
    target_rows: int
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class BucketAnswer:
    """Counts, digest and files of a judged bucket. `wanted`: files of hashes to look for in a topic's tail, by point.
    `late_wanted`: those of them whose row came late, so that its record may be before the first window. `to_order`:
    files of hashes of which the tail must tell records and tombstones, by point.

    `expected`: the number of verdicts that there must be, counted from the snapshot's rows, not from the verdicts.
    `older_than_log`: the number of keys that are undecidable because the file does not say from when on to judge.
    `truncated`: the number of keys that are judged because a truncation took their copies. `unreached`: the source's
    records that the consumer group has not reached, by partition. `clean`: the number of keys that the first pass took
    out; the file of verdicts has none of them. `kept`: the others, of a bucket to be judged again. `met_alone`: the
    file of keys whose rows had no record in the window, and `met_far_ahead` the number of those whose record is so far
    ahead that no later window would ask this one for them. `recorded_in`: the other windows in which keys have records
    that the store lacks now, `repeated_from` those with records of keys that are repeated here. `handed_on`: the file
    of the keys (`HASHES`) that the store lacks, and that this window handed over before. `maybe_met`: the file of the
    keys (`MAYBE_MET`) that it lacks, of whose rows windows before may have met some, and `maybe_met_since` the first of
    its moments. `missing_records`: the window's records of missing keys, by partition. `in_doubt`: the transactions in
    doubt that may hold keys of the bucket at the target, and at the source (`source_in_doubt`); `held_in_doubt`: the
    number of findings for that reason, by point.
    """

    hop: str
    bucket: str
    counts: HopCounts
    digest: int
    expected: int
    without_source: int
    undecidable_without_source: int
    before_baseline_without_source: int
    differing_without_source: int
    pending_without_source: int
    unexpected_with_source: int
    older_than_log: int
    truncated: int
    clean: int
    verdicts: str
    findings: str | None
    wanted: Mapping[str, str] = field(default_factory=dict)
    late_wanted: Mapping[str, str] = field(default_factory=dict)
    unreached: Mapping[int, Unreached] = field(default_factory=dict)
    missing_records: Mapping[int, int] = field(default_factory=dict)
    looked_up: str | None = None
    kept: KeptExceptions | None = None
    to_order: Mapping[str, str] = field(default_factory=dict)
    met_alone: str | None = None
    met_far_ahead: int = 0
    recorded_in: frozenset[int] = frozenset()
    repeated_from: frozenset[int] = frozenset()
    handed_on: str | None = None
    maybe_met: str | None = None
    maybe_met_since: datetime | None = None
    in_doubt: tuple[TransactionInDoubt, ...] = ()
    source_in_doubt: tuple[TransactionInDoubt, ...] = ()
    held_in_doubt: Mapping[str, int] = field(default_factory=dict)
