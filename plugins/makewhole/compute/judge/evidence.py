"""Collect the evidence of a finding: copies, places, producers, and what happened to the logs.

All of it is JSON-able. Evidence decides no verdict; `makewhole.compute.judge.causes` reads the cause from it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, islice
from typing import Any

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, IS_GONE, TAIL, WAITING, empty
from makewhole.compute.judge.copier_commits import CopierCommits
from makewhole.compute.judge.key_copies import CopyFields, FrameRow, KeyCopies
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.judge.open_copies import open_evidence
from makewhole.compute.judge.sequence_evidence import NoSequences, SequenceEvidence
from makewhole.compute.versions import shown_version
from makewhole.model.incident import Incident
from makewhole.model.points import PointKind
from makewhole.model.verdict import Cause, Verdict

_IDENTITY = ("partition", "offset", "leader_epoch", "producer_id", "producer_epoch", "sequence", "replay_plan")
_SHOWN = 10
_NAMED = 1_000
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_WAITED = (Cause.NOT_CONSUMED, Cause.NOT_COMMITTED, Cause.IN_DOUBT)
PARTIAL = "partial_transaction"
"""The name of the evidence that a missing key's transaction wrote to the target, and has the key elsewhere."""
_OF_COPIERS = (Verdict.MISSING, Verdict.DUPLICATE, Verdict.UNEXPECTED)


@dataclass(frozen=True, kw_only=True)
class HopContext:
    """The input of evidence and causes for one bucket of a hop.

    `written`: keys of which compensation wrote records to the source, be they among its copies or behind them.
    `inserted`: keys of which it wrote a row straight into the target. `committed`: the next offset per partition of the
    consumer `group`, or of the sink by its own `progress` (what that is called); `sink`: what Iceberg's
    sink says of itself, by partition what ends in `_offsets`; `unconsumed`: keys with a record that
    it has not reached. `waiting`: since when keys wait; those that are not in it wait since the window was `opened_at`.
    `truncated`: keys that earlier windows saw in the target and that a truncation took from it. `open_copies`: copies
    in the target that cannot be read as committed yet; `uncommitted`: those in the source. `in_doubt`: keys that
    transactions in doubt may hold in the target, and `doubt` what is known of these. `not_lost` returns by key hash
    what shows that a key which the store lacks is not lost. `source_elsewhere`: the source's copies outside the slice,
    the oldest first. `copier`: what the group that copies one topic into the other has committed. The copies of a topic
    say `is_replay` and `is_produced`.
    """

    hop: str
    source_kind: PointKind
    target_kind: PointKind
    source: pl.DataFrame
    target: pl.DataFrame
    source_elsewhere: pl.DataFrame = field(default_factory=lambda: empty(ELSEWHERE))
    written: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    inserted: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    opened_at: datetime = _NEVER
    group: str | None = None
    progress: str | None = None
    committed: Mapping[int, int] | None = None
    sink: Mapping[str, Any] | None = None
    unconsumed: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    waiting: pl.DataFrame = field(default_factory=lambda: empty(WAITING))
    target_elsewhere: pl.DataFrame = field(default_factory=lambda: empty(ELSEWHERE))
    truncated: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    open_copies: pl.DataFrame = field(default_factory=lambda: empty(TAIL))
    uncommitted: pl.DataFrame = field(default_factory=lambda: empty(TAIL))
    source_log: LogHistory = field(default_factory=LogHistory)
    target_log: LogHistory = field(default_factory=LogHistory)
    source_sequences: SequenceEvidence = field(default_factory=NoSequences)
    target_sequences: SequenceEvidence = field(default_factory=NoSequences)
    in_doubt: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    doubt: Mapping[str, Any] = field(default_factory=dict)
    is_upsert: bool = False
    copier: CopierCommits | None = None
    not_lost: Callable[[str], CopyFields] = lambda _: {}


class KeyFacts:
    """The copies and the state of each wanted key, and the state of the logs at both ends."""

    def __init__(self, wanted: pl.DataFrame, context: HopContext) -> None:
        self.source = KeyCopies(wanted, context.source)
        self.target = KeyCopies(wanted, context.target)
        self.elsewhere = KeyCopies(wanted, context.target_elsewhere)
        self.source_elsewhere = KeyCopies(wanted, context.source_elsewhere, is_ordered=True)
        self.open = KeyCopies(wanted, context.open_copies)
        self.uncommitted = KeyCopies(wanted, context.uncommitted)
        self._context = context
        self._unconsumed = set(context.unconsumed.select(HASH).rows())
        self._written = set(context.written.select(HASH).rows())
        self._inserted = set(context.inserted.select(HASH).rows())
        self._in_doubt = set(context.in_doubt.select(HASH).rows())
        self._truncated = set(context.truncated.select(HASH).rows())
        self._since = {(high, low): since for high, low, since in context.waiting.select(*WAITING).rows()}

    @cached_property
    def log_evidence(self) -> dict[str, Any]:
        """Incidents of the logs at both ends: the same for every key whose absence they may explain."""
        return _log_evidence(self._context)

    def is_unconsumed(self, row: FrameRow) -> bool:
        """Return whether the consumer group has not reached the key's record yet."""
        return (row["key_hi"], row["key_lo"]) in self._unconsumed

    def is_in_doubt(self, row: FrameRow) -> bool:
        """Return whether a transaction in doubt may hold the key in the target."""
        return (row["key_hi"], row["key_lo"]) in self._in_doubt

    def is_written(self, row: FrameRow) -> bool:
        """Return whether compensation wrote a record of the key to the source."""
        return (row["key_hi"], row["key_lo"]) in self._written

    def is_inserted(self, row: FrameRow) -> bool:
        """Return whether compensation wrote a row of the key straight into the target."""
        return (row["key_hi"], row["key_lo"]) in self._inserted

    def waiting_since(self, row: FrameRow) -> datetime:
        """Return the S1 of the window that first judged the key pending; this one's, when no other did."""
        since: datetime = self._since.get((row["key_hi"], row["key_lo"]), self._context.opened_at)
        return since

    def is_passed_outside(self, row: FrameRow) -> bool:
        """Return whether it is known that the copier's group committed the key's records outside of transactions."""
        copier = self._context.copier
        return copier is not None and copier.passed_outside(committed_places(self.source.of(row), self._context.hop))

    def is_truncated(self, row: FrameRow) -> bool:
        """Return whether an earlier window saw the key in the target and a truncation took it."""
        return (row["key_hi"], row["key_lo"]) in self._truncated


def evidence_of(row: FrameRow, known: KeyFacts, context: HopContext, cause: Cause) -> dict[str, Any]:
    """Return the evidence of one judged row and its cause."""
    source, target = known.source.of(row), known.target.of(row)
    evidence = _copies_evidence(row, source, target, known.elsewhere.of(row), context.hop)
    evidence |= _contradiction(row, chain(_passing(source, context.hop), _before(known.source_elsewhere.of(row))))
    if context.source_kind is PointKind.TOPIC:
        evidence |= _outside_evidence(row, known.source_elsewhere.of(row), is_upsert=context.is_upsert)
        evidence |= _record_before(row, source, known.source_elsewhere.of(row), context.hop)
    evidence |= _group_evidence(source, context)
    if context.copier is not None and Verdict(row["verdict"]) in _OF_COPIERS:
        evidence |= context.copier.evidence(committed_places(source, context.hop))
    if row["verdict"] == Verdict.PENDING.value or cause in _WAITED:
        evidence["waiting_since"] = known.waiting_since(row).isoformat()
        evidence |= open_evidence(known.open.of(row), context.target_log.transactions)
    if cause is Cause.IN_DOUBT:
        evidence |= context.doubt
    if row["verdict"] in (Verdict.MISSING.value, Verdict.UNDECIDABLE.value):
        evidence |= known.log_evidence
    if row["verdict"] == Verdict.UNDECIDABLE.value:
        evidence |= open_evidence(known.uncommitted.of(row), context.source_log.transactions)
    evidence |= context.not_lost(row["key_hash"])
    sequences = _sequences(source, context.source_sequences) + _sequences(
        chain(target, known.elsewhere.of(row)), context.target_sequences
    )
    if sequences:
        evidence["sequences"] = sequences[:_SHOWN]
    return evidence


def _group_evidence(source: Sequence[CopyFields], context: HopContext) -> dict[str, Any]:
    """Return the consumer group, or the sink's own progress, and where it stands in the partitions of the copies; null
    where it has no offset."""
    if context.committed is None or context.source_kind is not PointKind.TOPIC:
        return {}
    standing = {str(copy["partition"]): context.committed.get(copy["partition"]) for copy in source}
    if context.progress is not None:
        return {"progress": context.progress, "progress_offsets": standing}
    named = {} if context.group is None else {"group": context.group}
    return {**named, "group_committed": standing, **_sink_evidence(context.sink, standing)}


def _sink_evidence(sink: Mapping[str, Any] | None, partitions: Iterable[str]) -> dict[str, Any]:
    """Return what Iceberg's sink says of itself, of these partitions of the topic."""
    if sink is None:
        return {}
    of_topic = {name: {at: sink[name].get(at) for at in partitions} for name in ("group_offsets", "table_offsets")}
    return {"sink": {**sink, **of_topic}}


def _outside_evidence(row: FrameRow, copies: Sequence[CopyFields], *, is_upsert: bool) -> dict[str, Any]:
    """Return the source's records outside the slice: for events the first, under upsert the latest, last."""
    is_set_back = row["verdict"] == Verdict.MISMATCHED.value and not row["in_source"]
    if not copies or not (is_set_back or row["verdict"] in (Verdict.DUPLICATE.value, Verdict.CONFLICT.value)):
        return {}
    if is_upsert:
        copies = sorted(copies, key=lambda copy: (copy["version"] is not None, copy["version"] or 0))[-_SHOWN:]
    return {"source_elsewhere": [_outside_copy(copy) for copy in copies[:_SHOWN]]}


def _record_before(
    row: FrameRow, source: Sequence[CopyFields], outside: Sequence[CopyFields], hop: str
) -> dict[str, Any]:
    """Return the record of a window before whose values count, where the slice has none that does: the latest version,
    or the first record of an event."""
    before = [copy for copy in _before(outside) if copy["row_hash"] is not None or copy["is_tombstone"]]
    if row["latest_place"] is None:
        is_set_back = row["verdict"] == Verdict.MISMATCHED.value and not row["in_source"]
        return {"source": [_outside_copy(before[0])]} if is_set_back and before else {}
    latest = next((copy for copy in before if copy["place"] == row["latest_place"]), None)
    if latest is None or any(copy["place"] == row["latest_place"] for copy in _passing(source, hop)):
        return {}
    latest_copy = {"partition": int(latest["place"].split(":")[0])} | latest
    rivals = [{"partition": int(copy["place"].split(":")[0])} | copy for copy in before]
    is_unknown = _is_order_unknown(latest_copy, [*rivals, *source], hop)
    return {"latest": _outside_copy(latest)} | ({"order_unknown": True} if is_unknown else {})


def _outside_copy(copy: CopyFields) -> CopyFields:
    partition, offset = copy["place"].split(":")
    fields = {"place": copy["place"], "partition": int(partition), "offset": int(offset)}
    fields |= {} if copy["version"] is None else {"version": shown_version(copy["version"])}
    fields |= {"tombstone": True} if copy["is_tombstone"] else {}
    fields |= {"later": True} if copy["is_later"] else {}
    return fields | ({} if copy["row_hash"] is None else {"row_hash": str(copy["row_hash"])})


def _log_evidence(context: HopContext) -> dict[str, Any]:
    evidence: dict[str, Any] = {}
    if context.target_kind is PointKind.TOPIC and context.target_log.leader_changes:
        evidence["leader_changes"] = [_incident_fields(change) for change in context.target_log.leader_changes[:_SHOWN]]
        suspects = context.target_sequences.suspects()
        if suspects:
            evidence["suspect_producers"] = list(suspects[:_SHOWN])
    truncated = (*context.source_log.truncated, *context.target_log.truncated)
    if truncated:
        evidence["truncated"] = [_incident_fields(incident) for incident in truncated[:_SHOWN]]
    return evidence


def _incident_fields(incident: Incident) -> dict[str, Any]:
    place = {"partition": incident.partition, "lo": incident.lo, "hi": incident.hi}
    return {**place, **{name: incident.detail[name] for name in sorted(incident.detail)}}


def _sequences(copies: Iterable[CopyFields], numbering: SequenceEvidence) -> list[dict[str, Any]]:
    """Return the numbering of each producer among the copies, by partition, producer id and epoch."""
    identities: dict[tuple[int, int, int], None] = {}
    for copy in copies:
        producer_id, epoch = copy.get("producer_id"), copy.get("producer_epoch")
        if producer_id is None or producer_id < 0 or epoch is None:
            continue
        partition = copy.get("partition")
        identities[int(copy["place"].split(":")[0]) if partition is None else partition, producer_id, epoch] = None
    numberings = [(identity[0], numbering.of(*identity)) for identity in sorted(identities)]
    return [{"partition": partition, **state} for partition, state in numberings if state is not None]


def _copies_evidence(
    row: FrameRow,
    source: Sequence[CopyFields],
    target: Sequence[CopyFields],
    elsewhere: Sequence[CopyFields],
    hop: str,
) -> CopyFields:
    """Return the places, identities and values that every finding shows."""
    evidence: dict[str, Any] = {
        "in_source": row["in_source"],
        "source_copies": row["source_copies"],
        "target_copies": row["target_copies"],
        "source": [_shown_copy(copy, hop) for copy in source[:_SHOWN]],
        "target": [_shown_copy(copy) for copy in target[:_SHOWN]],
    }
    latest = _compared_copy(row, source, hop)
    if row["row_hash"] is not None:
        evidence["row_hash"] = str(row["row_hash"])
    if latest is not None:
        evidence["values"] = {name[2:]: value for name, value in latest.items() if name.startswith("c:")}
    if row["latest_place"] is not None and latest is not None:
        evidence["latest"] = _shown_copy(latest)
        if _is_order_unknown(latest, source, hop):
            evidence["order_unknown"] = True
    if row["has_later"]:
        evidence["has_later"] = True
    if row["elsewhere_copies"]:
        evidence["elsewhere"] = list(row["elsewhere_places"][:_SHOWN])
        known = [_shown_copy(copy) for copy in elsewhere[:_SHOWN] if copy["producer_id"] is not None]
        if known:
            evidence["elsewhere_producers"] = known
    if row["verdict"] == Verdict.DUPLICATE.value and target and "offset" in target[0]:
        evidence["repeated"] = _repeated(row, target)
    return evidence | _compared_values(row, latest, _passing(source, hop), target)


def _passing(copies: Iterable[CopyFields], hop: str) -> Iterator[CopyFields]:
    """Yield the copies that pass the filter of a hop."""
    return (copy for copy in copies if hop not in copy["excluded_by"])


def committed_places(source: Iterable[CopyFields], hop: str) -> list[tuple[int, int]]:
    """Return partition and offset of the records that a hop has to carry."""
    wanted = (copy for copy in _passing(source, hop) if not copy.get("is_aborted") and not copy.get(IS_GONE))
    return [(copy["partition"], copy["offset"]) for copy in islice(wanted, _NAMED)]


def _before(copies: Iterable[CopyFields]) -> Iterator[CopyFields]:
    """Yield the copies outside the slice that lie before it."""
    return (copy for copy in copies if not copy["is_later"])


def _contradiction(row: FrameRow, source: Iterable[CopyFields]) -> CopyFields:
    """Return whether the source holds an event with different values; versions of a key may differ."""
    held = {copy["row_hash"] for copy in source if not copy.get("is_aborted") and copy["row_hash"] is not None}
    return {"source_contradicts": True} if row["latest_place"] is None and len(held) > 1 else {}


def _compared_values(
    row: FrameRow, latest: CopyFields | None, source: Iterable[CopyFields], target: Sequence[CopyFields]
) -> CopyFields:
    """Return the columns in which a mismatched key differs, or what each copy of a key in conflict holds."""
    if row["verdict"] == Verdict.MISMATCHED.value:
        return {"columns": _differences(latest, target)}
    if row["verdict"] == Verdict.CONFLICT.value:
        return {"conflict": {"source": _held_values(source), "target": _held_values(target)}}
    return {}


def _repeated(row: FrameRow, records: Sequence[CopyFields]) -> CopyFields:
    """Return the places of a key's committed records in the slice that stand in no other's place, in order, and the
    number of copies elsewhere: each copy beyond the first did its harm, and may have to be reversed."""
    here = (copy["place"] for copy in records if not copy["is_aborted"] and not copy.get("is_replay"))
    return {"here": list(islice(here, _NAMED)), "elsewhere": row["elsewhere_copies"]}


def _compared_copy(row: FrameRow, source: Sequence[CopyFields], hop: str) -> CopyFields | None:
    """Return the source's copy to compare the target with, of those that pass the filter of the hop: the latest
    version, or of an event the first committed."""
    if row["latest_place"] is not None:
        return next((copy for copy in _passing(source, hop) if copy["place"] == row["latest_place"]), None)
    committed = (copy for copy in _passing(source, hop) if not copy.get("is_aborted"))
    return next(committed, None) or next(_passing(source, hop), None)


def _is_order_unknown(latest: CopyFields, source: Iterable[CopyFields], hop: str) -> bool:
    """Return whether another copy could be the latest version, too, with another value: see
    `makewhole.compute.judge.judge_versions`.

    Of each partition of a topic the last copy could; of a table, each of that time.
    """
    is_table = "partition" not in latest
    rivals: dict[Any, tuple[Any, Any, bool]] = {}
    for copy in source:
        if not copy.get("is_aborted") and copy["version"] == latest["version"]:
            is_gone = bool(copy.get("is_tombstone")) or hop in (copy["excluded_by"] or ())
            rivals[copy["place" if is_table else "partition"]] = copy.get("time"), copy["row_hash"], is_gone
    values = {(value, is_gone) for time, value, is_gone in rivals.values() if not is_table or time == latest["time"]}
    return len(values) > 1


def _shown_copy(copy: FrameRow, hop: str = "") -> CopyFields:
    """Return the fields of a copy that evidence names. `excluded`: it does not pass the filter of the hop."""
    fields = {"place": copy["place"]}
    fields |= {name: copy[name] for name in _IDENTITY if copy.get(name) is not None}
    if copy.get("version") is not None:
        fields["version"] = shown_version(copy["version"])
    if copy.get("is_replay") or copy.get("is_produced"):
        fields["replayed"] = True
    if copy.get("is_aborted"):
        fields["aborted"] = True
    if copy.get("is_tombstone"):
        fields["tombstone"] = True
    if copy.get(IS_GONE):
        fields["gone"] = True
    if hop in copy.get("excluded_by", ()):
        fields["excluded"] = True
    if copy.get("time") is not None:
        fields["time"] = copy["time"].isoformat()
    return fields


def _held_values(copies: Iterable[CopyFields]) -> list[CopyFields]:
    """Return the values that committed copies of a key hold, each with its place."""
    held = islice((copy for copy in copies if not copy.get("is_aborted")), _SHOWN)
    return [
        {
            "place": copy["place"],
            "values": {name.removeprefix("c:"): value for name, value in copy.items() if name.startswith("c:")},
        }
        for copy in held
    ]


def _differences(latest: CopyFields | None, target: Sequence[CopyFields]) -> CopyFields:
    if latest is None or not target:
        return {}
    # Of several versions in a topic the last one counts; a key has one row in a table.
    right = next((copy for copy in reversed(target) if not copy.get("is_aborted")), target[-1])
    names = [name for name in latest if name.startswith("c:") and latest[name] != right.get(name)]
    return {name.removeprefix("c:"): {"source": latest[name], "target": right.get(name)} for name in names}
