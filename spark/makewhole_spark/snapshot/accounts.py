"""Add up the pieces of a topic: the account of every offset, the sequences of its producers, the incidents."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

from makewhole.kafka.log.account import OffsetSpan
from makewhole.kafka.sequences.audit import SequenceAudit, merge
from makewhole.model.errors import CorruptionError
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TopicPoint
from makewhole.model.window import Accounting, PartitionRange
from makewhole.window.context import WindowContext
from makewhole.window.opening.coordinates import may_be_compacted, require_no_compaction
from makewhole_spark.snapshot.compacted_keys import compared_entry
from makewhole_spark.snapshot.read_piece import PieceRead, point_folder

SEQUENCES_BEFORE = "sequences_before"
"""The entry of a topic's manifest that says which audit of sequences its own continues, by digest."""
UNNUMBERED = "unnumbered"
"""The entry of a topic's manifest that says how many records carry no producer id."""
_CARRIED_PRODUCERS = 10_000
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class PartitionAccount:
    """The sum of one range's pieces. `now_id`: the topic's id when it was read, another one if it was recreated."""

    range: PartitionRange
    now_id: str
    reads: Sequence[PieceRead] = field(default_factory=list)

    @property
    def is_gone(self) -> bool:
        """Return whether the incarnation of the range was deleted before it could be read."""
        return self.now_id != self.range.topic_id

    @property
    def accounting(self) -> Accounting:
        if self.is_gone:
            return Accounting(span=self.range.span, expired=self.range.span)
        parts = [read.accounting for read in self.reads if read.accounting is not None]
        return reduce(Accounting.__add__, parts, Accounting(span=0))

    @property
    def leader_epochs(self) -> list[list[int]]:
        """`[epoch, first offset, end offset]` as read, in offset order."""
        entries = (list(entry) for read in self.reads for entry in read.leader_epochs)
        return sorted(entries, key=lambda entry: entry[1])

    @property
    def truncated(self) -> list[OffsetSpan]:
        return merge_spans(span for read in self.reads for span in read.truncated)

    @property
    def expired(self) -> list[OffsetSpan]:
        """Spans deleted before they could be read, by retention or DeleteRecords."""
        return merge_spans(span for read in self.reads for span in read.expired if span not in read.truncated)

    @property
    def first_record_ms(self) -> int | None:
        """The timestamp of the first data record of the range, in milliseconds; None without one."""
        return next((read.first_record_ms for read in self.reads if read.first_record_ms is not None), None)

    @property
    def read_until(self) -> int:
        """Offset at which reading ended: before the range's end if that was truncated, or the topic is another one."""
        if self.is_gone:
            return self.range.lo
        last = self.truncated[-1:]
        return last[0][0] if last and last[0][1] == self.range.hi else self.range.hi


def merge_spans(spans: Iterable[OffsetSpan]) -> list[OffsetSpan]:
    """Sort spans and merge adjacent ones."""
    merged: list[OffsetSpan] = []
    for start, end in sorted(spans):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def partition_accounts(
    context: WindowContext, point: TopicPoint, reads: Iterable[PieceRead], now_id: str
) -> list[PartitionAccount]:
    """Return the account of every range of the window.

    Raises:
        CorruptionError: offsets of a range are not accounted for; nothing of the read may be kept.
        RefusedError: offsets are compacted, and what they held says which rows may be there.
    """
    of: dict[int | None, list[PieceRead]] = {}
    for read in reads:
        of.setdefault(read.partition, []).append(read)
    accounts = [
        PartitionAccount(range=part, now_id=now_id, reads=of.get(part.partition, []))
        for part in context.window.ranges[point.name]
    ]
    for account in accounts:
        _require_whole(context, account)
        if account.accounting.compacted and not may_be_compacted(context.pipeline, point):
            require_no_compaction(point, f"{account.accounting.compacted} offsets of it were compacted")
    return accounts


def _require_whole(context: WindowContext, account: PartitionAccount) -> None:
    """Check span = data + control + aborted + compacted + expired + undecodable + erasures, and the places of expired
    offsets."""
    part, sums = account.range, account.accounting
    placed = part.span if account.is_gone else sum(end - start for start, end in account.expired + account.truncated)
    if not sums.is_complete or sums.span != part.span or sums.expired != placed:
        raise CorruptionError(
            f"{context.window.label}: {part.topic}/{part.partition} has {part.span} offsets in [{part.lo}, {part.hi}), "
            f"{sums.accounted} are accounted for, {sums.expired} of them as expired and {placed} of those with their "
            "places; nothing was kept. Run the window again"
        )


def log_manifest(
    context: WindowContext,
    point: TopicPoint,
    accounts: Sequence[PartitionAccount],
    before: Mapping[str, Any],
    *,
    compares_keys: bool = False,
) -> dict[str, Any]:
    """Return what a topic's manifest has besides its files. `before` is the manifest of the window before.
    `compares_keys`: Kafka's keys were compared with the business keys, as far as there were records."""
    compared = (read.compared for account in accounts for read in account.reads)
    by_partition = {str(account.range.partition): account for account in accounts}
    cut = {at: account for at, account in by_partition.items() if account.read_until < account.range.hi}
    folder = point_folder(context, point)
    return {
        "ranges": [asdict(account.range) for account in accounts],
        "accounting": sum((account.accounting for account in accounts), Accounting(span=0)).to_json_dict(),
        "accounting_by_partition": {at: account.accounting.to_json_dict() for at, account in by_partition.items()},
        "first_records": {at: account.first_record_ms for at, account in by_partition.items()},
        "read_until": {at: account.read_until for at, account in cut.items()},
        "archive": f"{folder}/archive",
        "leader_epochs": {at: account.leader_epochs for at, account in by_partition.items()},
        SEQUENCES_BEFORE: sequences_of(before),
        UNNUMBERED: sum(read.unnumbered for account in accounts for read in account.reads),
        **(compared_entry(compared, before) if compares_keys else {}),
        **_write_sequences(context, f"{folder}/sequences.json", accounts, before),
    }


def sequences_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the digest of the audit of sequences that a manifest names; None: it names none."""
    digest: str | None = manifest.get("sequences_sha256")
    return digest


def accounts_again(
    context: WindowContext, point: TopicPoint, manifest: Mapping[str, Any], now_id: str
) -> list[PartitionAccount]:
    """Return accounts of the ranges of a topic that was read whole, as far as incidents need them, by its manifest."""
    read = PieceRead(files=(), rows=0, unnumbered=manifest[UNNUMBERED])
    parts = context.window.ranges[point.name]
    return [PartitionAccount(range=part, now_id=now_id, reads=[] if at else [read]) for at, part in enumerate(parts)]


def _write_sequences(
    context: WindowContext, path: str, accounts: Iterable[PartitionAccount], before: Mapping[str, Any]
) -> dict[str, str]:
    """Write the audit of every partition since the first window; return the path and the SHA-256 of the file.

    The audit of the window before is continued where the partition's log is the same one.
    """
    known = (
        {} if "sequences" not in before else json.loads(context.storage.read_bytes(before["sequences"]))["partitions"]
    )
    partitions = {}
    for account in accounts:
        part, carried = account.range, known.get(str(account.range.partition))
        audits = [read.sequences for read in account.reads if read.sequences is not None]
        if carried is not None and (carried["topic_id"], carried["lineage"]) == (part.topic_id, part.lineage):
            audits.insert(0, SequenceAudit.from_json(carried["audit"]))
        audit = reduce(merge, audits) if audits else SequenceAudit()
        partitions[str(part.partition)] = {
            "topic_id": part.topic_id,
            "lineage": part.lineage,
            "audit": audit.with_latest_producers(_CARRIED_PRODUCERS).to_json(),
        }
    content = json.dumps({"version": _VERSION, "partitions": partitions}, separators=(",", ":")).encode()
    context.storage.write_bytes(path, content)
    return {"sequences": path, "sequences_sha256": hashlib.sha256(content).hexdigest()}


def log_incidents(
    point: TopicPoint, accounts: Iterable[PartitionAccount], epochs_before: Mapping[int, int]
) -> list[Incident]:
    """Return the incidents that reading found. `epochs_before`: the window before's last leader epoch, by partition."""
    incidents: list[Incident] = []
    for account in accounts:
        incidents += _lost_spans(point, account)
        if not account.is_gone:
            incidents += _leader_change(point, account, epochs_before.get(account.range.partition))
    return incidents


def _lost_spans(point: TopicPoint, account: PartitionAccount) -> list[Incident]:
    """Return an incident for each span that was gone before it could be read."""
    before_read: dict[str, Any] = {"before_it_was_read": True}
    if account.is_gone:
        whole = [(account.range.lo, account.range.hi)] if account.range.span else []
        detail = before_read | {"new_id": account.now_id}
        return [_incident(IncidentKind.TOPIC_RECREATED, point, account.range, span, detail) for span in whole]
    epochs = [list(entry) for entry in account.range.leader_epochs]
    detail = before_read | {"lineage": account.range.lineage, "seen_epochs": epochs}
    return [
        *(_incident(IncidentKind.EXPIRED, point, account.range, span, before_read) for span in account.expired),
        *(_incident(IncidentKind.TRUNCATED, point, account.range, span, detail) for span in account.truncated),
    ]


def _leader_change(point: TopicPoint, account: PartitionAccount, before: int | None) -> list[Incident]:
    """Return the incident of a range that several leaders wrote, or another leader than the one before it.

    Records that only the old leader acknowledged may be gone.
    """
    part = account.range
    epochs = part.leader_epochs or tuple((epoch, end) for epoch, _, end in account.leader_epochs)
    known = {epoch for epoch, _ in epochs} | ({before} if before is not None else set())
    if len(known) < 2:
        return []
    lo = part.lo if before is not None and epochs[0][0] != before else min(epochs[0][1], part.hi)
    detail = {"epochs": [list(entry) for entry in epochs], "before": before}
    return [_incident(IncidentKind.LEADER_CHANGED, point, part, (max(lo, part.lo), part.hi), detail)]


def _incident(
    kind: IncidentKind, point: TopicPoint, part: PartitionRange, span: OffsetSpan, detail: Mapping[str, Any]
) -> Incident:
    return Incident(
        kind=kind,
        point=point.name,
        topic=point.topic,
        topic_id=part.topic_id,
        partition=part.partition,
        lo=span[0],
        hi=span[1],
        detail=detail,
    )
