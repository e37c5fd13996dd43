"""Explain what a scan found: what it means, what it does not prove, and what to do.

Findings that should not be there come first, then what could not be read, then what is good to know.
"""

from collections.abc import Callable, Iterator

from makewhole.audit.notes import NOTES
from makewhole.audit.report import AuditFinding, AuditReport, Level
from makewhole.model.text import counted, duration, listed, number

_ORDER = (Level.FOUND, Level.NOT_KNOWN, Level.WEAK, Level.NOTE)


def findings(report: AuditReport) -> tuple[AuditFinding, ...]:
    """Return every finding of a report, the worst first."""
    unsorted = [finding for check in _CHECKS for finding in check(report)]
    return tuple(sorted(unsorted, key=lambda finding: _ORDER.index(finding.level)))


def _gaps(report: AuditReport) -> Iterator[AuditFinding]:
    sequences = report.sequences
    if not sequences.gaps:
        return
    yield AuditFinding(
        code="sequence_gap",
        level=Level.FOUND,
        what=f"{counted(sequences.gaps, 'gap')} in producers' numbering: at least "
        f"{counted(sequences.missing, 'record is', 'records are')} missing",
        means="A broker takes only the next number of a producer epoch. What these numbers belonged to was accepted "
        "and is gone, or a broker took numbers that it should have refused.",
        unproven="It does not say which business records they were.",
        todo="Compare with what the producer says it sent around the places listed.",
    )


def _repeats(report: AuditReport) -> Iterator[AuditFinding]:
    sequences = report.sequences
    if not sequences.repeats:
        return
    expiry = report.settings.get("producer.id.expiration.ms", {}).get("value")
    remembered = f" ({duration(int(expiry))} here)" if expiry else ""
    yield AuditFinding(
        code="sequence_repeat",
        level=Level.FOUND,
        what=f"{counted(sequences.repeated, 'record is', 'records are')} in the log a second time, "
        f"in {counted(sequences.repeats, 'place')}",
        means="The same numbers of the same producer epoch stand at two offsets. A retry was taken again, mostly "
        f"because the broker had forgotten the producer: after producer.id.expiration.ms{remembered} without a write.",
        unproven="What an application sends again by itself has new numbers: only the business key finds that.",
        todo="Let consumers discard by business key; keep retries shorter than producer.id.expiration.ms.",
    )


def _heads(report: AuditReport) -> Iterator[AuditFinding]:
    count = report.sequences.missing_heads
    if not count:
        return
    yield AuditFinding(
        code="missing_head",
        level=Level.FOUND,
        what=f"{counted(count, 'producer epoch begins', 'producer epochs begin')} above 0",
        means="A new epoch begins at 0 in every partition, and what is gone from the log cannot have held the numbers "
        "before. They were accepted once: a leader whose log was truncated forgets records and producer alike.",
        unproven="Which business records they were, and whether they were acknowledged to the producer.",
        todo="Look at the leader epochs around the offsets listed, and compare with what the producer sent.",
    )


def _regressions(report: AuditReport) -> Iterator[AuditFinding]:
    count = report.sequences.epoch_regressions
    if count:
        yield AuditFinding(
            code="epoch_regression",
            level=Level.FOUND,
            what=f"An older producer epoch wrote again after a newer one, {counted(count, 'time')}",
            means="A fenced producer got through: brokers refuse this as long as they remember the newer epoch.",
            todo="Look for two processes with the same transactional.id, and for a truncation before these offsets.",
        )


def _hanging(report: AuditReport) -> Iterator[AuditFinding]:
    for transaction in report.transactions.open:
        if not transaction.is_hanging:
            continue
        partition, offset = transaction.partition, transaction.first_offset
        held = next(part for part in report.partitions if part.partition == partition)
        word = "no coordinator knows it" if transaction.state is None else f"its coordinator says {transaction.state}"
        yield AuditFinding(
            code="hanging_transaction",
            level=Level.FOUND,
            what=f"A transaction hangs in partition {partition} from offset {number(offset)} on: {word}",
            means=f"Nothing will end it. Committed readers stop at offset {number(held.stable)}, "
            f"{counted(held.end - held.stable, 'offset')} before the end. Nothing behind it is lost, it waits.",
            unproven="A user who may not describe transactional ids does not see them: ask again as one who may."
            if transaction.state is None
            else None,
            todo=f"kafka-transactions.sh --bootstrap-server {report.bootstrap} abort --topic {report.topic} "
            f"--partition {partition} --start-offset {offset}, once you know that the producer is dead.",
        )


def _unread(report: AuditReport) -> Iterator[AuditFinding]:
    for partition in report.partitions:
        if partition.failure is not None:
            yield AuditFinding(
                code="partition_not_read",
                level=Level.NOT_KNOWN,
                what=f"Partition {partition.partition} could not be read to its end",
                means=partition.failure,
                todo="Run the audit again; nothing here speaks for the rest of this partition.",
            )


def _undecodable(report: AuditReport) -> Iterator[AuditFinding]:
    count = report.offsets.undecodable
    if not count:
        return
    reasons = sorted({place.reason for partition in report.partitions for place in partition.undecodable})
    yield AuditFinding(
        code="undecodable",
        level=Level.NOT_KNOWN,
        what=f"{counted(count, 'offset')} cannot be accounted for",
        means="; ".join(reasons) + ".",
        unproven="Whether records were there, and what they said.",
        todo="kafka-dump-log.sh --deep-iteration on the broker's segments shows them; another replica may be sound.",
    )


def _replicas(report: AuditReport) -> Iterator[AuditFinding]:
    leaderless = [partition.partition for partition in report.partitions if partition.leader < 0]
    short = [partition.partition for partition in report.partitions if len(partition.in_sync) < len(partition.replicas)]
    if leaderless:
        yield AuditFinding(
            code="no_leader",
            level=Level.FOUND,
            what=f"No leader for {counted(len(leaderless), 'partition')}: {listed(leaderless)}",
            means="Nothing can be written or read there.",
            todo="Bring back a replica that is in sync; an unclean election would lose what only it has.",
        )
    if short:
        yield AuditFinding(
            code="under_replicated",
            level=Level.WEAK,
            what=f"Replicas are not in sync in {counted(len(short), 'partition')}: {listed(short)}",
            means="Fewer copies than the replication factor promises, now.",
            todo="Look at the brokers that lag or are down.",
        )


_CHECKS: tuple[Callable[[AuditReport], Iterator[AuditFinding]], ...] = (
    _gaps,
    _repeats,
    _heads,
    _regressions,
    _hanging,
    _replicas,
    _unread,
    _undecodable,
    *NOTES,
)
