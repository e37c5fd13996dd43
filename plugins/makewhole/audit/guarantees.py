"""Explain what a topic's settings can and cannot guarantee: a sentence each, with the value and the remedy."""

from collections.abc import Callable, Iterator

from makewhole.audit.report import AuditReport, Guarantee, Level
from makewhole.model.text import counted, duration, moment, size

_ENOUGH_REPLICAS = 3
_FOREVER = -1
_ONE_DAY_MS = 86_400_000
_ORDER = (Level.WEAK, Level.NOTE, Level.HOLDS)


def guarantees(report: AuditReport) -> tuple[Guarantee, ...]:
    """Return a sentence for each setting that bears on loss, repeats or evidence; the weak ones first."""
    unsorted = [guarantee for check in _CHECKS for guarantee in check(report)]
    return tuple(sorted(unsorted, key=lambda guarantee: _ORDER.index(guarantee.level)))


def _guarantee(report: AuditReport, setting: str, level: Level, says: str, todo: str | None = None) -> Guarantee:
    known = report.settings.get(setting, {})
    return Guarantee(
        setting=setting,
        value=known.get("value") or "",
        source=known.get("source") or "unknown",
        level=level,
        says=says,
        todo=todo,
    )


def _value(report: AuditReport, setting: str) -> str | None:
    return report.settings.get(setting, {}).get("value")


def _number(report: AuditReport, setting: str) -> int | None:
    value = _value(report, setting)
    return None if value is None else int(value)


def _factor(report: AuditReport) -> int:
    return min((len(partition.replicas) for partition in report.partitions), default=0)


def _replication(report: AuditReport) -> Iterator[Guarantee]:
    factor = _factor(report)
    level = Level.HOLDS if factor >= _ENOUGH_REPLICAS else Level.WEAK
    says = f"{counted(factor, 'copy', 'copies')} of every record. "
    if factor >= _ENOUGH_REPLICAS:
        says += "A broker may be lost while another is down for maintenance."
    elif factor > 1:
        says += "With one broker down there is no second copy, and acks=all means one."
    else:
        says += "The disk of one broker is all there is: with it, acknowledged records are gone."
    todo = None if level is Level.HOLDS else "replication factor 3 (kafka-reassign-partitions.sh)"
    yield Guarantee(setting="replication.factor", value=str(factor), source="topic", level=level, says=says, todo=todo)


def _in_sync(report: AuditReport) -> Iterator[Guarantee]:
    least, factor = _number(report, "min.insync.replicas"), _factor(report)
    if least is None:
        return
    name = "min.insync.replicas"
    if least > factor:
        yield _guarantee(
            report, name, Level.WEAK, f"More than the {factor} replicas there are: acks=all can never be given.",
            f"min.insync.replicas={max(factor - 1, 1)}",
        )  # fmt: skip
    elif least == 1:
        says = "acks=all is given when the leader alone has the record: if it dies then, the record is gone."
        todo = "min.insync.replicas=2" if factor >= _ENOUGH_REPLICAS else "replication factor 3, then 2"
        yield _guarantee(report, name, Level.WEAK, says, todo)
    elif least == factor:
        says = "acks=all needs every replica: with one broker down nothing can be written."
        yield _guarantee(report, name, Level.WEAK, says, f"min.insync.replicas={factor - 1} of {factor}")
    else:
        says = f"acks=all means {least} copies. acks=1 and acks=0 are not bound by it, and a log does not show acks."
        yield _guarantee(report, name, Level.HOLDS, says)


def _election(report: AuditReport) -> Iterator[Guarantee]:
    name = "unclean.leader.election.enable"
    value = _value(report, name)
    if value == "true":
        says = "A replica that lags may lead: acknowledged records are cut off and their offsets given away again."
        yield _guarantee(report, name, Level.WEAK, says, "unclean.leader.election.enable=false")
    elif value is not None:
        says = "Only a replica that is in sync may lead. By hand, an unclean election is still possible."
        yield _guarantee(report, name, Level.HOLDS, says)


def _retention(report: AuditReport) -> Iterator[Guarantee]:
    policy = _value(report, "cleanup.policy")
    if policy is None or "delete" not in policy:
        return
    limit_ms, limit_bytes = _number(report, "retention.ms"), _number(report, "retention.bytes")
    if limit_ms is not None and limit_ms != _FOREVER:
        age = "" if report.times.oldest_ms is None else f" The oldest stamp here is {moment(report.times.oldest_ms)}."
        says = f"A consumer that stops for {duration(limit_ms)} loses what it has not read; so does a replay.{age}"
        level = Level.WEAK if limit_ms < _ONE_DAY_MS else Level.NOTE
        yield _guarantee(report, "retention.ms", level, says, "longer than your longest outage, or keep snapshots")
    elif limit_ms == _FOREVER:
        yield _guarantee(report, "retention.ms", Level.HOLDS, "Nothing is deleted for its age.")
    if limit_bytes is not None and limit_bytes != _FOREVER:
        largest = max((partition.size_bytes for partition in report.partitions), default=0)
        says = f"A partition is cut at {size(limit_bytes)}, however young (the largest holds {size(largest)} of data): "
        says += "a burst of writes deletes what was not read yet."
        yield _guarantee(report, "retention.bytes", Level.WEAK, says, "retention.bytes=-1, and alarms on disk space")


def _compaction(report: AuditReport) -> Iterator[Guarantee]:
    policy = _value(report, "cleanup.policy")
    if policy is None or "compact" not in policy:
        return
    says = "Only the latest record of a key is kept for sure: the history of a key, and counts, prove nothing. "
    says += "Compare the latest version per key."
    yield _guarantee(report, "cleanup.policy", Level.NOTE, says)
    kept = _number(report, "delete.retention.ms")
    if kept is not None:
        says = f"A deletion (tombstone) is seen for {duration(kept)}: who reads more slowly keeps what was deleted."
        yield _guarantee(report, "delete.retention.ms", Level.NOTE, says)


def _timestamps(report: AuditReport) -> Iterator[Guarantee]:
    name = "message.timestamp.type"
    value = _value(report, name)
    if value == "CreateTime":
        says = "Timestamps are the producers' own word: they may be wrong, and late records carry old ones. "
        says += "Windows by time miss them; offsets do not."
        yield _guarantee(report, name, Level.NOTE, says)
        yield from _limits(report)
    elif value is not None:
        says = "Timestamps are the leader's clock at the append: they say nothing about when things happened."
        yield _guarantee(report, name, Level.NOTE, says)


def _limits(report: AuditReport) -> Iterator[Guarantee]:
    name = "message.timestamp.before.max.ms"
    before = _number(report, name)
    if before is not None and before > 10 * 365 * _ONE_DAY_MS:
        says = "Any past timestamp is taken; one of 1970 is deleted by retention.ms as soon as its segment is closed."
        yield _guarantee(report, name, Level.NOTE, says, f"{name}={7 * _ONE_DAY_MS} (a week), if no old data is loaded")


def _size(report: AuditReport) -> Iterator[Guarantee]:
    name = "max.message.bytes"
    limit = _number(report, name)
    if limit is not None:
        says = f"A batch above {size(limit)} is refused; an application that does not look at send errors loses it."
        yield _guarantee(report, name, Level.NOTE, says)


def _memory(report: AuditReport) -> Iterator[Guarantee]:
    name = "producer.id.expiration.ms"
    limit = _number(report, name)
    if limit is not None:
        says = f"A producer that is silent for {duration(limit)} is forgotten: its next retry may be taken twice."
        yield _guarantee(report, name, Level.NOTE, says)


def _transactions(report: AuditReport) -> Iterator[Guarantee]:
    name = "transaction.max.timeout.ms"
    limit = _number(report, name)
    if limit is not None and "transactional" in report.batches.kinds:
        says = f"A transaction may hold committed readers back for {duration(limit)}, at its producer's choice."
        yield _guarantee(report, name, Level.NOTE, says)


_CHECKS: tuple[Callable[[AuditReport], Iterator[Guarantee]], ...] = (
    _replication,
    _in_sync,
    _election,
    _retention,
    _compaction,
    _timestamps,
    _size,
    _memory,
    _transactions,
)
