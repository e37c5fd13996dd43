"""Explain what a scan found that is no fault by itself, but often taken for loss or for proof."""

from collections.abc import Callable, Iterator

from makewhole.audit.report import AuditFinding, AuditReport, Level
from makewhole.model.text import counted, duration, listed, moment, share

_AHEAD_MS = 300_000
_BEFORE_KAFKA_MS = 1_293_840_000_000  # 2011
_FEW_RECORDS = 10
_MANY_BATCHES = 10_000


def _open(report: AuditReport) -> Iterator[AuditFinding]:
    transactions = report.transactions
    running = [transaction for transaction in transactions.open if not transaction.is_hanging]
    if running:
        oldest = min(transaction.started_at_ms or transaction.last_timestamp_ms for transaction in running)
        held = sum(partition.tail.records for partition in report.partitions)
        yield AuditFinding(
            code="open_transaction",
            level=Level.NOTE,
            what=f"{counted(len(running), 'transaction is', 'transactions are')} open, the oldest for "
            f"{duration(max(report.audited_at_ms - oldest, 0))}; "
            f"{counted(held, 'record is', 'records are')} held back",
            means="Committed readers stop at the first one's first offset, for other producers' records, too.",
            unproven="Whether they will be committed.",
        )
    if transactions.open_refusal is not None:
        yield AuditFinding(
            code="coordinators_not_asked",
            level=Level.NOT_KNOWN,
            what="Which open transactions hang is not known",
            means=transactions.open_refusal,
            todo="Describe on the topic, on __transaction_state and on the transactional ids is needed.",
        )


def _aborted(report: AuditReport) -> Iterator[AuditFinding]:
    count, records = report.transactions.aborted.count, report.offsets.aborted
    if count:
        whole = report.offsets.data + records
        yield AuditFinding(
            code="aborted",
            level=Level.NOTE,
            what=f"{counted(count, 'transaction was', 'transactions were')} aborted, with "
            f"{counted(records, 'record')} still in the log ({share(records, whole)} of all)",
            means="Only readers with isolation.level=read_committed pass them over. librdkafka does so by default, "
            "Java's consumer does not.",
        )


def _expired(report: AuditReport) -> Iterator[AuditFinding]:
    expired = report.offsets.expired
    if expired:
        yield AuditFinding(
            code="expired",
            level=Level.NOTE,
            what=f"{counted(expired, 'offset is', 'offsets are')} gone from the beginning of the log",
            means="Deleted by retention or by DeleteRecords.",
            unproven="Whether every consumer had read them.",
        )


def _compacted(report: AuditReport) -> Iterator[AuditFinding]:
    count = report.offsets.compacted
    if count:
        yield AuditFinding(
            code="compacted",
            level=Level.NOTE,
            what=f"{counted(count, 'offset holds', 'offsets hold')} nothing any more: compaction took their records",
            means="Older versions of keys, tombstones, and aborted records. A gap in numbering that they could "
            "explain is not counted.",
        )


def _elections(report: AuditReport) -> Iterator[AuditFinding]:
    changed = [partition for partition in report.partitions if len(partition.leader_epochs) > 1]
    if changed:
        count = sum(len(partition.leader_epochs) - 1 for partition in changed)
        yield AuditFinding(
            code="leader_changes",
            level=Level.NOTE,
            what=f"Leaders changed {counted(count, 'time')} between records, in "
            f"{counted(len(changed), 'partition')}: {listed([partition.partition for partition in changed])}",
            means="At each change a new leader's log became the truth.",
            unproven="Whether records were cut off: with acks=0 or 1, and in unclean elections, acknowledged ones may "
            "be, their offsets given away again without any gap.",
        )


def _bumps(report: AuditReport) -> Iterator[AuditFinding]:
    bumps = report.sequences.epoch_bumps
    if bumps:
        yield AuditFinding(
            code="epoch_bumps",
            level=Level.NOTE,
            what=f"Producers began a new epoch {counted(bumps, 'time')}",
            means="Each transaction of a Java client of Kafka 4 is an epoch, and so is a restart with the same "
            "transactional.id. Without transactions, a producer gave up on a batch: it was lost, or sent again.",
        )


def _plain(report: AuditReport) -> Iterator[AuditFinding]:
    plain = report.batches.kinds.get("plain")
    if plain is not None and plain.records:
        yield AuditFinding(
            code="no_numbering",
            level=Level.NOTE,
            what=f"{counted(plain.records, 'record')} ({share(plain.records, report.batches.total.records)}) "
            "came from producers without idempotence",
            means="They carry no numbers: of their losses and repeats a log can say nothing.",
            todo="enable.idempotence=true (the default of Java's producer since 3.0; librdkafka's is false).",
        )


def _clocks(report: AuditReport) -> Iterator[AuditFinding]:
    times = report.times
    if times.newest_ms is not None and times.newest_ms > report.audited_at_ms + _AHEAD_MS:
        yield _wrong_clock(
            "future_timestamps", f"Timestamps reach into the future, up to {moment(times.newest_ms)} UTC"
        )
    if times.oldest_ms is not None and times.oldest_ms < _BEFORE_KAFKA_MS:
        yield _wrong_clock("ancient_timestamps", f"Timestamps go back to {moment(times.oldest_ms)} UTC")
    if times.late.batches:
        yield AuditFinding(
            code="late_timestamps",
            level=Level.NOTE,
            what=f"{counted(times.late.batches, 'batch', 'batches')} "
            f"({share(times.late.batches, report.batches.total.batches)}) "
            f"older than one before, by up to {duration(times.latest_ms)}",
            means="A search by time finds the first offset that is late enough, not all records of an hour. "
            "Cut windows by offset.",
        )


def _wrong_clock(code: str, what: str) -> AuditFinding:
    return AuditFinding(
        code=code,
        level=Level.NOTE,
        what=what,
        means="Retention by time, searches by time and the plot of rates go by these stamps.",
    )


def _small_batches(report: AuditReport) -> Iterator[AuditFinding]:
    spread = report.batches.records_per_batch
    if spread.count >= _MANY_BATCHES and spread.total < _FEW_RECORDS * spread.count:
        yield AuditFinding(
            code="small_batches",
            level=Level.NOTE,
            what=f"Batches hold {spread.total / spread.count:.1f} records on average",
            means="Small batches cost brokers and readers many times the work, and compress badly.",
            todo="linger.ms=20 or more at the producers.",
        )


def _no_proof(report: AuditReport) -> Iterator[AuditFinding]:
    sequences = report.sequences
    if sequences.producers and not (sequences.gaps or sequences.missing_heads):
        yield AuditFinding(
            code="no_gap",
            level=Level.NOTE,
            what=f"No gap in the numbering of {counted(sequences.producers, 'producer')}",
            means="Between the first and the last number of each epoch that is still in the log, nothing is missing.",
            unproven="That nothing was lost: what never reached the log has no number, what was cut off the end leaves "
            "no gap, and a new epoch starts again at 0. Only the producer's own record of what it sent can show that.",
        )


NOTES: tuple[Callable[[AuditReport], Iterator[AuditFinding]], ...] = (
    _open,
    _no_proof,
    _plain,
    _bumps,
    _elections,
    _aborted,
    _expired,
    _compacted,
    _clocks,
    _small_batches,
)
