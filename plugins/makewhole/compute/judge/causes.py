"""Find the cause of each verdict: the mechanism behind it, as far as the log and the consumer group show it."""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import polars as pl

from makewhole.compute.frames import FINDINGS, empty
from makewhole.compute.judge.evidence import PARTIAL, HopContext, KeyFacts, evidence_of
from makewhole.compute.judge.key_copies import FrameRow
from makewhole.compute.judge.log_history import LogHistory
from makewhole.model.points import PointKind
from makewhole.model.verdict import Cause, Verdict

_SEQUENCE_KEY = ("partition", "producer_id", "producer_epoch", "sequence")
_NO_PRODUCER = -1
_PAIR = 2
_MAY_BE_IN_DOUBT = (Verdict.PENDING, Verdict.MISSING, Verdict.MISMATCHED, Verdict.DUPLICATE, Verdict.CONFLICT)


class _Original(NamedTuple):
    """Distinguish a record from another one with the same key: of a key with a million of them, all are held."""

    place: str
    producer_id: int | None
    identity: tuple[Any, ...]
    is_ours: bool


def _original(copy: Mapping[str, Any]) -> _Original:
    identity = tuple(copy[name] for name in _SEQUENCE_KEY)
    return _Original(copy["place"], copy["producer_id"], identity, _is_ours(copy))


Evidence = dict[str, Any]


def explain(judged: pl.DataFrame, context: HopContext, masked: Callable[[Evidence], Evidence] = dict) -> pl.DataFrame:
    """Return the findings (`FINDINGS`) of every judged row that is one, sorted by key hash. `masked`: their evidence as
    it is kept."""
    wanted = judged.filter(pl.col("verdict").is_in([verdict.value for verdict in Verdict if verdict.is_finding]))
    if wanted.is_empty():
        return empty(FINDINGS)
    known = KeyFacts(wanted, context)
    rows = [_finding(row, known, context, masked) for row in wanted.iter_rows(named=True)]
    return pl.DataFrame(rows, schema=FINDINGS)


def _finding(
    row: FrameRow, known: KeyFacts, context: HopContext, masked: Callable[[Evidence], Evidence]
) -> dict[str, Any]:
    cause = _cause(row, known, context)
    evidence = masked(evidence_of(row, known, context, cause))
    return {
        "hop": context.hop,
        "key": row["key"],
        "key_hash": row["key_hash"],
        "verdict": row["verdict"],
        "cause": cause.value,
        "evidence": json.dumps(evidence, sort_keys=True, ensure_ascii=False, default=str),
    }


def _cause(row: FrameRow, known: KeyFacts, context: HopContext) -> Cause:
    waited = _cause_of_waiting(row, known)
    if waited is not None:
        return waited
    if row["hint"] is not None:
        return Cause(row["hint"])
    match Verdict(row["verdict"]):
        case Verdict.MISSING:
            return _cause_of_missing(row, known, context)
        case Verdict.DUPLICATE if context.target_kind is PointKind.TOPIC:
            return _cause_of_repeated_copies(row, known)
        case Verdict.DUPLICATE:
            return _cause_of_repeated_rows(row, known, context.hop)
        case Verdict.MISMATCHED:
            return Cause.VALUE_DIFFERS
        case Verdict.UNEXPECTED:
            aborted = any(copy.get("is_aborted") for copy in known.source.of(row))
            return Cause.READ_UNCOMMITTED if aborted else Cause.NOT_IN_SOURCE
        case Verdict.PENDING:
            return Cause.NOT_YET_CONSUMED if known.is_unconsumed(row) else Cause.IN_FLIGHT
        case _:
            return Cause.UNREADABLE_SOURCE


def _cause_of_waiting(row: FrameRow, known: KeyFacts) -> Cause | None:
    """Return what holds up a key that is in doubt, or held up one whose absence counts only because it has waited for
    too long; None: nothing did."""
    if Verdict(row["verdict"]) in _MAY_BE_IN_DOUBT and known.is_in_doubt(row) and not known.is_unconsumed(row):
        return Cause.IN_DOUBT
    verdict, is_version = Verdict(row["verdict"]), row["latest_place"] is not None
    if verdict is not Verdict.MISSING and not (verdict is Verdict.MISMATCHED and is_version):
        return None
    if known.is_unconsumed(row):
        return Cause.NOT_CONSUMED
    return Cause.NOT_COMMITTED if verdict is Verdict.MISSING and known.open.of(row) else None


def _cause_of_missing(row: FrameRow, known: KeyFacts, context: HopContext) -> Cause:
    if context.target_kind is PointKind.TOPIC:
        return _cause_of_uncopied(row, known, context)
    if context.source_kind is PointKind.TOPIC and context.committed:
        return Cause.COMMITTED_BEFORE_WRITTEN
    return Cause.LOST_AFTER_TOPIC if context.source_kind is PointKind.TOPIC else Cause.NEVER_WRITTEN


def _cause_of_uncopied(row: FrameRow, known: KeyFacts, context: HopContext) -> Cause:
    """Return why a topic lacks a key. Of what a transaction brought to another topic alone, and of what a copier's
    group passed outside of its transactions, nothing else can be why, unless the topic's log itself lost something."""
    log = context.target_log
    cause = _cause_of_unproduced(row, known, log)
    if cause not in (Cause.ABORTED, Cause.NEVER_PRODUCED) or log.recreated or log.leader_changes or log.truncated:
        return cause
    if PARTIAL in context.not_lost(row["key_hash"]):
        return Cause.PARTIAL_TRANSACTION
    return Cause.COMMITTED_BEFORE_WRITTEN if known.is_passed_outside(row) else cause


def _cause_of_unproduced(row: FrameRow, known: KeyFacts, log: LogHistory) -> Cause:
    if any(copy.get("is_aborted") for copy in known.target.of(row)):
        return Cause.ABORTED
    if known.is_truncated(row):
        return Cause.TRUNCATED
    if log.recreated:
        return Cause.TOPIC_RECREATED
    return Cause.LEADER_CHANGED if log.leader_changes or log.truncated else Cause.NEVER_PRODUCED


def _cause_of_repeated_rows(row: FrameRow, known: KeyFacts, hop: str) -> Cause:
    """Return the cause of several rows in a store: one that compensation wrote, or whose record it wrote, beside that
    of the original; several records; aborted records beside one that was committed; or one record written repeatedly.

    A reader of uncommitted records writes a row for each copy in the log. Where there are as many rows as that, it is
    the cause; with fewer or more of them aborted copies explain nothing.
    """
    copies = chain(known.source.of(row), known.source_elsewhere.of(row))
    is_pair = known.is_inserted(row) and row["target_copies"] == _PAIR
    if is_pair or _has_late_original(copies, is_written=known.is_written(row)):
        return Cause.LATE_ORIGINAL
    source_copies, elsewhere_at_source = row["source_copies"], row["source_elsewhere_copies"]
    is_upstream = source_copies > 1 or (source_copies > 0 and elsewhere_at_source > 0) or elsewhere_at_source > 1
    if is_upstream or _is_twice_in_a_record(known.source.of(row), hop):
        return Cause.UPSTREAM_DUPLICATE
    aborted = sum(bool(copy.get("is_aborted")) for copy in known.source.of(row))
    is_uncommitted = aborted > 0 and row["target_copies"] == source_copies + elsewhere_at_source + aborted
    return Cause.READ_UNCOMMITTED if is_uncommitted else Cause.WRITTEN_BEFORE_COMMITTED


def _is_twice_in_a_record(source: Iterable[Mapping[str, Any]], hop: str) -> bool:
    """Return whether a committed record has several elements of a key that pass the filter of a hop."""
    places = [copy["place"] for copy in source if "offset" in copy and _is_carried(copy, hop)]
    return len(set(places)) < len(places)


def _is_carried(copy: Mapping[str, Any], hop: str) -> bool:
    return not copy["is_aborted"] and hop not in (copy["excluded_by"] or ())


def _has_late_original(copies: Iterable[Mapping[str, Any]], *, is_written: bool = False) -> bool:
    """Return whether a topic has one copy of a key that compensation did not write, beside one that it wrote.

    `is_written`: it wrote one, which may stand behind the copies.
    """
    return _is_one_beside_ours(
        {copy["place"]: _is_ours(copy) for copy in copies if not copy.get("is_aborted")}, is_written=is_written
    )


def _is_one_beside_ours(is_ours: Mapping[str, bool], *, is_written: bool = False) -> bool:
    """Return whether one copy (by place) is not ours, and others are."""
    ours = sum(is_ours.values())
    return (ours > 0 or is_written) and len(is_ours) - ours == 1


def _is_ours(copy: Mapping[str, Any]) -> bool:
    return bool(copy.get("is_replay") or copy.get("is_produced"))


def _cause_of_repeated_copies(row: FrameRow, known: KeyFacts) -> Cause:
    """Return the cause of several committed records in a topic. Where they are copies of one record that several
    sessions of a copier made, and its group committed that outside of their transactions, the commits came too late."""
    here, beyond = known.target.of(row), known.elsewhere.of(row)
    cause = _cause_of_repeated_records(here, beyond)
    is_of_one = row["source_copies"] == 1 and not row["source_elsewhere_copies"] and not known.is_written(row)
    if cause is not Cause.APPLICATION_RESEND or not is_of_one:
        return cause
    sessions = {(copy["producer_id"], copy["producer_epoch"]) for copy in chain(here, beyond) if _counts(copy)}
    return Cause.WRITTEN_BEFORE_COMMITTED if len(sessions) > 1 and known.is_passed_outside(row) else cause


def _counts(copy: Mapping[str, Any]) -> bool:
    """Return whether a record is committed, and its producer is known."""
    return not copy.get("is_aborted") and copy["producer_id"] is not None


def _cause_of_repeated_records(in_slice: Iterable[Mapping[str, Any]], elsewhere: Iterable[Mapping[str, Any]]) -> Cause:
    """Return the cause of several committed records in a topic, by the identities of their producers.

    One that compensation produced and one that it did not: the original came late.

    A producer without an id repeats unseen: where two copies have none, a retry cannot be distinguished from anything
    else. A copy that is only known by its place is evidence against no other. Elements of one record were sent once.
    """
    here = (copy for copy in in_slice if not copy["is_aborted"] and not copy.get("is_replay"))
    beyond = (_with_partition(copy) for copy in elsewhere if not copy["is_replay"])
    originals = {copy["place"]: _original(copy) for copy in chain(here, beyond)}.values()
    if _is_one_beside_ours({original.place: original.is_ours for original in originals}):
        return Cause.LATE_ORIGINAL
    known = [original for original in originals if original.producer_id is not None]
    without_id = sum(original.producer_id == _NO_PRODUCER for original in known)
    if without_id and without_id + (len(originals) - len(known)) > 1:
        return Cause.RETRY_WITHOUT_IDEMPOTENCE
    identities = [original.identity for original in known if original.producer_id != _NO_PRODUCER]
    return Cause.SEQUENCE_REPEATED if len(set(identities)) < len(identities) else Cause.APPLICATION_RESEND


def _with_partition(copy: Mapping[str, Any]) -> dict[str, Any]:
    """Add the partition of a copy from its place, which as text is `partition:offset`."""
    partition = copy["place"].split(":")[0]
    return {**copy, "partition": int(partition) if partition.isdigit() else None}
