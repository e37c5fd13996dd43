"""Hold what loads the target of a hop to the delivery of the hop: its group, its lag, its offsets, its isolation."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from makewhole.kafka.group_offsets import read_group_offsets
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.offsets_by_time import first_record_stamps
from makewhole.kafka.scan.batch_statistics import TRANSACTIONAL
from makewhole.model.connection import Connection
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted, duration
from makewhole.model.window import PartitionRange
from makewhole.window.delivery.claims import HopClaim
from makewhole.window.delivery.topics import JudgedTopic
from makewhole.window.readers.hop_offsets import read_hop_offsets


def weak_reader(
    pipeline: Pipeline, claim: HopClaim, topic: JudgedTopic, log: TopicLog, target: Connection, now: datetime
) -> Iterator[Weakness]:
    """Yield what weakens the delivery of what reads a topic for a hop. `target`: the connection of the hop's end.

    Raises:
        TransientError: the brokers, or the database, do not answer.
        PermanentError: one of them refuses.
    """
    hop = claim.hop
    if topic.kinds(TRANSACTIONAL):
        yield _isolation(hop, topic)
    if claim.delivery.forbids_loss:
        yield from _group(pipeline, hop, topic, log, now)
    if hop.progress is not None and hop.consumer_group is not None:
        yield from _ahead(pipeline, hop, log, target)


def _isolation(hop: Hop, topic: JudgedTopic) -> Weakness:
    return Weakness(
        severity=Severity.UNKNOWN,
        thing=_name(hop),
        setting="isolation.level",
        value=f"not known, and {counted(topic.kinds(TRANSACTIONAL), 'record')} of {topic.name} came in transactions",
        expected="read_committed",
        because="no broker keeps it, and at read_uncommitted, the default of Java's clients, aborted records are read",
        remedy="isolation.level=read_committed in the consumer's configuration",
        fault=Fault.READ_UNCOMMITTED,
    )


def _group(pipeline: Pipeline, hop: Hop, topic: JudgedTopic, log: TopicLog, now: datetime) -> Iterator[Weakness]:
    group = hop.consumer_group
    if group is None:
        if hop.progress is None:
            yield _weak(
                hop, Severity.UNKNOWN, "consumer_group", "not in the file", "the group of what loads the target",
                "how far it is, and whether it commits before it writes, is not known",
                f"consumer_group: … at the hop {hop.name}", Fault.COMMITTED_FIRST,
            )  # fmt: skip
        return
    offsets = read_group_offsets(log, group)
    if offsets.out_of_range:
        text = "; ".join(
            f"partition {at}: {group_offset.committed}, and the log {group_offset.log_text}"
            if group_offset.cut_off is not None
            else f"partition {at}: {group_offset.committed} of [{group_offset.start}, {group_offset.end}]"
            for at, group_offset in sorted(offsets.out_of_range.items())
        )
        yield _weak(
            hop, Severity.BROKEN, "committed offset", f"outside the log ({text})", "inside the log",
            "the records that it reads next are gone, or never were: it skips to where auto.offset.reset says",
            f"look at what it has missed, then kafka-consumer-groups.sh --bootstrap-server … --group {group} "
            f"--topic {topic.name} --reset-offsets --to-earliest --execute", Fault.EXPIRED,
        )  # fmt: skip
    if hop.progress is not None:
        return
    if all(offset is None for offset in offsets.committed.values()) and not offsets.out_of_range:
        yield _weak(
            hop, Severity.UNKNOWN, "committed offset", "none", "one for each partition that it reads",
            "the group has another name, has not begun, or has lost its offsets", f"consumer_group: … at {hop.name}",
            Fault.NO_GROUP,
        )  # fmt: skip
        return
    yield from _lag(pipeline, hop, log, offsets.committed, now)


def _lag(
    pipeline: Pipeline, hop: Hop, log: TopicLog, committed: Mapping[int, int | None], now: datetime
) -> Iterator[Weakness]:
    """Yield the group when records that are older than `settle` stand before it. The end of a transaction is none, nor
    is an aborted record: a reader that commits what it has read stands there as long as nothing follows."""
    settled, ends, topic_id = log.offsets_at(now - pipeline.settle), log.stable_ends(), log.describe().topic_id
    ahead = {}
    for partition, end in ends.items():
        due, reads_next = settled.get(partition), committed.get(partition)
        due = end.offset if due is None else min(due, end.offset)
        if reads_next is not None and reads_next < due:
            ahead[partition] = PartitionRange(
                topic=log.topic, topic_id=topic_id, partition=partition, lo=reads_next, hi=due
            )
    stamps = first_record_stamps(log, ahead.values()) if ahead else {}
    late = {partition: part.span for partition, part in ahead.items() if stamps[partition] is not None}
    if late:
        settle = duration(int(pipeline.settle.total_seconds() * 1000))
        yield _weak(
            hop, Severity.RISK, "lag", f"{sum(late.values())} offsets older than `settle` ({settle}) are not read "
            f"(partition {', '.join(map(str, sorted(late)))})", "no record older than `settle`",
            "what is only late is called missing, or handed on from window to window",
            "start what reads it, or give it more instances; a longer `settle:` where it is always so late",
            Fault.FAR_BEHIND,
        )  # fmt: skip


def _ahead(pipeline: Pipeline, hop: Hop, log: TopicLog, target: Connection) -> Iterator[Weakness]:
    """Yield the group of a sink with offsets of its own when it has committed more than the sink."""
    assert hop.consumer_group is not None
    stands = read_hop_offsets(log, hop, pipeline.points[hop.target], target)
    own = {} if stands is None else stands.committed
    ahead = []
    for partition, offset in sorted(log.committed(hop.consumer_group).items()):
        in_table = own.get(partition)
        if offset is not None and in_table is not None and offset > in_table:
            ahead.append(f"partition {partition}: {offset}, and {in_table} in its table")
    if ahead:
        yield _weak(
            hop, Severity.BROKEN, "committed offset", f"ahead of the sink's own ({'; '.join(ahead)})",
            "never above what is in the table",
            "who starts from the group skips what the table does not have, with a lag of 0",
            f"stop the sink, then kafka-consumer-groups.sh --bootstrap-server … --group {hop.consumer_group} "
            "--reset-offsets --to-offset … --execute, or have it start from its own offsets", Fault.GROUP_AHEAD,
        )  # fmt: skip


def _name(hop: Hop) -> str:
    return f"{hop.reader or 'the reader'} of {hop.name}"


def _weak(
    hop: Hop, severity: Severity, setting: str, value: str, expected: str, because: str, remedy: str, fault: Fault
) -> Weakness:
    return Weakness(
        severity=severity,
        thing=_name(hop),
        setting=setting,
        value=value,
        expected=expected,
        because=because,
        remedy=remedy,
        fault=fault,
    )
