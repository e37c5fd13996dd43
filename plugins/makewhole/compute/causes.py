"""Why: the mechanism behind each verdict, as far as the log and the consumer group carry it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

import polars as pl

from makewhole.compute.copies import CopyFields, FrameRow, KeyCopies, basic_evidence
from makewhole.compute.duplicates import cause_of_records, cause_of_rows
from makewhole.compute.frames import ELSEWHERE, FINDINGS, HASH, HASHES, TAIL, empty
from makewhole.compute.log_history import LogHistory
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import PointKind
from makewhole.model.verdict import Cause, Verdict

_SHOWN = 10


class SequenceEvidence(Protocol):
    """What the numbering of a topic's producers says, JSON-able. Evidence, never a verdict."""

    def of(self, partition: int, producer_id: int, epoch: int) -> Mapping[str, Any] | None:
        """Of one producer epoch in a partition; None when it is not known."""
        ...

    def suspects(self) -> Sequence[Mapping[str, Any]]:
        """Producers whose numbering is broken, or whose epoch was bumped: records of theirs may be lost."""
        ...


class NoSequences:
    """Of a table, or of a topic whose producers were not followed."""

    def of(self, partition: int, producer_id: int, epoch: int) -> None:  # noqa: ARG002
        return None

    def suspects(self) -> Sequence[Mapping[str, Any]]:
        return ()


@dataclass(frozen=True, kw_only=True)
class HopContext:
    """What the causes of one bucket are read from. `committed` is the consumer group's next offset per partition.

    `truncated`: keys that earlier windows saw in the target and that were cut off it. `open_copies`: copies in the
    target that nobody can read as committed yet. The sequences are those of the topics at the two ends.
    """

    hop: str
    source_kind: PointKind
    target_kind: PointKind
    source: pl.DataFrame
    target: pl.DataFrame
    committed: Mapping[int, int] | None = None
    unconsumed: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    target_elsewhere: pl.DataFrame = field(default_factory=lambda: empty(ELSEWHERE))
    truncated: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    open_copies: pl.DataFrame = field(default_factory=lambda: empty(TAIL))
    source_log: LogHistory = field(default_factory=LogHistory)
    target_log: LogHistory = field(default_factory=LogHistory)
    source_sequences: SequenceEvidence = field(default_factory=NoSequences)
    target_sequences: SequenceEvidence = field(default_factory=NoSequences)


def explain(judged: pl.DataFrame, context: HopContext) -> pl.DataFrame:
    """Findings (`FINDINGS`) for every judged row that is not matched, sorted by key hash."""
    wanted = judged.filter(pl.col("verdict") != Verdict.MATCHED.value)
    if wanted.is_empty():
        return empty(FINDINGS)
    known = _Known(wanted, context)
    rows = [
        {
            "hop": context.hop,
            "key": row["key"],
            "key_hash": row["key_hash"],
            "verdict": row["verdict"],
            "cause": _cause(row, known, context).value,
            "evidence": json.dumps(_evidence(row, known, context), sort_keys=True, ensure_ascii=False, default=str),
        }
        for row in wanted.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=FINDINGS)


class _Known:
    """What is known of the wanted keys, by key."""

    def __init__(self, wanted: pl.DataFrame, context: HopContext) -> None:
        self.source = KeyCopies(wanted, context.source)
        self.target = KeyCopies(wanted, context.target)
        self.elsewhere = KeyCopies(wanted, context.target_elsewhere)
        self.open = KeyCopies(wanted, context.open_copies)
        self._context = context
        self._unconsumed = set(context.unconsumed.select(HASH).rows())
        self._truncated = set(context.truncated.select(HASH).rows())

    @cached_property
    def of_the_log(self) -> dict[str, Any]:
        """What happened to the logs at both ends: the same for every key whose absence may have to do with it."""
        return _of_the_log(self._context)

    def is_unconsumed(self, row: FrameRow) -> bool:
        return (row["key_hi"], row["key_lo"]) in self._unconsumed

    def is_truncated(self, row: FrameRow) -> bool:
        return (row["key_hi"], row["key_lo"]) in self._truncated


# Evidence


def _evidence(row: FrameRow, known: _Known, context: HopContext) -> dict[str, Any]:
    source, target = known.source.of(row), known.target.of(row)
    evidence = basic_evidence(row, source, target, known.elsewhere.of(row))
    if context.committed is not None and context.source_kind is PointKind.TOPIC:
        evidence["group_committed"] = {
            str(copy["partition"]): context.committed.get(copy["partition"]) for copy in source
        }
    if row["verdict"] == Verdict.PENDING.value:
        evidence |= _in_the_way(known.open.of(row), context.target_log.transactions)
    if row["verdict"] in (Verdict.MISSING.value, Verdict.UNDECIDABLE.value):
        evidence |= known.of_the_log
    sequences = _sequences(source, context.source_sequences) + _sequences(
        [*target, *known.elsewhere.of(row)], context.target_sequences
    )
    if sequences:
        evidence["sequences"] = sequences[:_SHOWN]
    return evidence


def _in_the_way(open_copies: Sequence[CopyFields], transactions: Sequence[Incident]) -> dict[str, Any]:
    """The record that nobody can read as committed yet, and the transaction that it waits for."""
    places = sorted({copy["place"] for copy in open_copies})
    held = [one for one in transactions if any(_is_behind(place, one) for place in places)]
    evidence: dict[str, Any] = {"open": places} if places else {}
    if held:
        evidence["transactions"] = [_transaction(one) for one in held]
    return evidence


def _is_behind(place: str, transaction: Incident) -> bool:
    partition, offset = (int(part) for part in place.split(":"))
    return partition == transaction.partition and offset >= (transaction.lo or 0)


def _transaction(incident: Incident) -> dict[str, Any]:
    detail = incident.detail
    stamp = detail.get("last_timestamp_ms")
    has_time = isinstance(stamp, int) and 0 <= stamp < 253_402_300_800_000
    return {
        "partition": incident.partition,
        "first_offset": incident.lo,
        **{name: detail.get(name) for name in ("producer_id", "producer_epoch", "transactional_id", "state")},
        "since": datetime.fromtimestamp(stamp / 1000, UTC).isoformat() if has_time and stamp is not None else None,
        "is_hanging": incident.kind is IncidentKind.HANGING_TRANSACTION,
    }


def _of_the_log(context: HopContext) -> dict[str, Any]:
    evidence: dict[str, Any] = {}
    if context.target_kind is PointKind.TOPIC and context.target_log.leader_changes:
        evidence["leader_changes"] = [_placed(one) for one in context.target_log.leader_changes[:_SHOWN]]
        suspects = context.target_sequences.suspects()
        if suspects:
            evidence["suspect_producers"] = list(suspects[:_SHOWN])
    truncated = (*context.source_log.truncated, *context.target_log.truncated)
    if truncated:
        evidence["truncated"] = [_placed(one) for one in truncated[:_SHOWN]]
    return evidence


def _placed(incident: Incident) -> dict[str, Any]:
    place = {"partition": incident.partition, "lo": incident.lo, "hi": incident.hi}
    return {**place, **{name: incident.detail[name] for name in sorted(incident.detail)}}


def _sequences(copies: Sequence[CopyFields], said_of: SequenceEvidence) -> list[dict[str, Any]]:
    """What the numbering of each copy's producer says. Evidence, never a verdict."""
    identities: dict[tuple[int, int, int], None] = {}
    for copy in copies:
        producer_id, epoch = copy.get("producer_id"), copy.get("producer_epoch")
        if producer_id is None or producer_id < 0 or epoch is None:
            continue
        partition = copy.get("partition")
        identities[int(copy["place"].split(":")[0]) if partition is None else partition, producer_id, epoch] = None
    found = [(identity[0], said_of.of(*identity)) for identity in sorted(identities)]
    return [{"partition": partition, **said} for partition, said in found if said is not None]


# Causes


def _cause(row: FrameRow, known: _Known, context: HopContext) -> Cause:
    if row["hint"] is not None:
        return Cause(row["hint"])
    match Verdict(row["verdict"]):
        case Verdict.MISSING:
            return _cause_of_missing(row, known, context)
        case Verdict.DUPLICATE if context.target_kind is PointKind.TOPIC:
            return cause_of_records(known.target.of(row), known.elsewhere.of(row))
        case Verdict.DUPLICATE:
            return cause_of_rows(row["source_copies"], row["source_elsewhere_copies"])
        case Verdict.MISMATCHED:
            return Cause.VALUE_DIFFERS
        case Verdict.UNEXPECTED:
            aborted = any(copy.get("is_aborted") for copy in known.source.of(row))
            return Cause.READ_UNCOMMITTED if aborted else Cause.NOT_IN_SOURCE
        case Verdict.PENDING:
            return Cause.NOT_YET_CONSUMED if known.is_unconsumed(row) else Cause.IN_FLIGHT
        case _:
            return Cause.UNREADABLE_SOURCE


def _cause_of_missing(row: FrameRow, known: _Known, context: HopContext) -> Cause:
    if context.target_kind is PointKind.TOPIC:
        return _cause_of_unproduced(row, known, context.target_log)
    if context.source_kind is PointKind.TOPIC and context.committed:
        return Cause.COMMITTED_BEFORE_WRITTEN
    return Cause.LOST_AFTER_TOPIC if context.source_kind is PointKind.TOPIC else Cause.NEVER_WRITTEN


def _cause_of_unproduced(row: FrameRow, known: _Known, log: LogHistory) -> Cause:
    if any(copy.get("is_aborted") for copy in known.target.of(row)):
        return Cause.ABORTED
    if known.is_truncated(row):
        return Cause.TRUNCATED
    if log.recreated:
        return Cause.TOPIC_RECREATED
    return Cause.LEADER_CHANGED if log.leader_changes or log.truncated else Cause.NEVER_PRODUCED
