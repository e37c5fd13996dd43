"""Hold a topic's replicas and settings, and those of its brokers, to what is claimed of the topic."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from makewhole.kafka.scan.batch_statistics import TRANSACTIONAL
from makewhole.kafka.scan.topic import TopicScan
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.text import duration, size

ENOUGH_REPLICAS = 3
_FOREVER = -1
_FULL = 0.8
_SHORTEST_MEMORY = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class JudgedTopic:
    """A topic with what its log shows, and what is claimed of it. `needed`: how long a record, or a tombstone, has to
    be there. `is_compacted_by_key`: Kafka's key is the business key, by the file. `has_group`: a reader keeps its
    offsets in Kafka."""

    scan: TopicScan
    forbids_loss: bool
    forbids_repeats: bool
    is_of_events: bool
    is_compacted_by_key: bool
    needed: timedelta
    longest_pending: timedelta
    has_group: bool

    @property
    def name(self) -> str:
        return self.scan.description.name

    @property
    def thing(self) -> str:
        return f"topic {self.name}"

    @property
    def factor(self) -> int:
        return min((len(partition.replicas) for partition in self.scan.description.partitions), default=0)

    def kinds(self, kind: str) -> int:
        """Return how many records of a kind of producer there are in what was scanned."""
        return sum(
            part.statistics.kinds[kind].records for part in self.scan.partitions if kind in part.statistics.kinds
        )

    def value(self, setting: str) -> str | None:
        """Return a setting as the brokers apply it; None: they do not show it."""
        known = self.scan.description.settings.get(setting)
        return None if known is None else known.value

    def number(self, setting: str) -> int | None:
        value = self.value(setting)
        return None if value is None else int(value)

    def set_to(self, setting: str, value: object) -> str:
        """Return the command that sets a setting of the topic."""
        return (
            f"kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name {self.name} "
            f"--add-config {setting}={value}"
        )


def weak_settings(topic: JudgedTopic) -> Iterator[Weakness]:
    """Yield the settings by which a topic, or its brokers, can break what is claimed of it."""
    if topic.forbids_loss:
        for check in _AGAINST_LOSS:
            yield from check(topic)
    if topic.forbids_repeats:
        yield from _producer_memory(topic)


def unread_settings(topic: JudgedTopic) -> str | None:
    """Return why settings of the topic, or of its brokers, could not be read; None: all could."""
    if topic.scan.description.refusal is not None:
        return topic.scan.description.refusal
    if topic.value("producer.id.expiration.ms") is None:
        return f"the settings of the brokers that lead {topic.name} are not shown to this user; grant DescribeConfigs"
    return None


def _replication(topic: JudgedTopic) -> Iterator[Weakness]:
    factor, least = topic.factor, topic.number("min.insync.replicas")
    if factor < ENOUGH_REPLICAS:
        yield Weakness(
            severity=Severity.BROKEN if factor < 2 else Severity.RISK,
            thing=topic.thing,
            setting="replication.factor",
            value=str(factor),
            expected=f"{ENOUGH_REPLICAS}",
            because="with its one broker the records are gone"
            if factor < 2
            else "while one broker is down, acks=all means one copy, or nothing can be written",
            remedy=f"kafka-reassign-partitions.sh --bootstrap-server … --execute --reassignment-json-file … "
            f"(three replicas for each partition of {topic.name})",
            fault=Fault.ACKS_OF_ONE,
        )
    if least is not None and factor > 1:
        yield from _in_sync(topic, factor, least)


def _in_sync(topic: JudgedTopic, factor: int, least: int) -> Iterator[Weakness]:
    expected = max(factor - 1, 2)
    if least == 1:
        because = "acks=all is given while the leader alone has the record: if it dies then, the record is gone"
        severity, fault = Severity.BROKEN, Fault.ACKS_OF_ONE
    elif least >= factor > 2 or least > factor:
        because = f"acks=all needs {least} of {factor} replicas: with one broker down sends fail"
        severity, fault = Severity.BROKEN if least > factor else Severity.RISK, Fault.TOO_FEW_IN_SYNC
    else:
        return
    yield Weakness(
        severity=severity,
        thing=topic.thing,
        setting="min.insync.replicas",
        value=f"{least} of {factor} replicas",
        expected=f"{min(expected, factor)}",
        because=because,
        remedy=topic.set_to("min.insync.replicas", min(expected, factor)),
        fault=fault,
    )


def _election(topic: JudgedTopic) -> Iterator[Weakness]:
    if topic.value("unclean.leader.election.enable") == "true":
        yield Weakness(
            severity=Severity.BROKEN,
            thing=topic.thing,
            setting="unclean.leader.election.enable",
            value="true",
            expected="false",
            because="a replica that lags may lead: acknowledged records are cut off, and their offsets used again",
            remedy=topic.set_to("unclean.leader.election.enable", "false"),
            fault=Fault.UNCLEAN_ELECTION,
        )


def _retention(topic: JudgedTopic) -> Iterator[Weakness]:
    if "delete" not in (topic.value("cleanup.policy") or ""):
        return
    kept, kept_bytes = topic.number("retention.ms"), topic.number("retention.bytes")
    if kept is not None and kept != _FOREVER and timedelta(milliseconds=kept) < topic.needed:
        yield _too_short(topic, "retention.ms", kept, "a window finds them gone, and cannot judge or send them again")
    if kept_bytes is not None and kept_bytes != _FOREVER:
        yield Weakness(
            severity=Severity.RISK,
            thing=topic.thing,
            setting="retention.bytes",
            value=size(kept_bytes),
            expected="-1",
            because="a burst deletes records that were not read yet, however young they are",
            remedy=topic.set_to("retention.bytes", -1),
            fault=Fault.EXPIRED,
        )


def _too_short(topic: JudgedTopic, setting: str, kept_ms: int, because: str) -> Weakness:
    least = int(topic.needed.total_seconds() * 1000)
    return Weakness(
        severity=Severity.BROKEN,
        thing=topic.thing,
        setting=setting,
        value=duration(kept_ms),
        expected=f"at least {duration(least)}",
        because=f"records are needed for an interval, `settle` and `pending.max_age`; {because}",
        remedy=topic.set_to(setting, least),
        fault=Fault.EXPIRED,
    )


def _compaction(topic: JudgedTopic) -> Iterator[Weakness]:
    if "compact" not in (topic.value("cleanup.policy") or ""):
        return
    if topic.is_of_events:
        yield Weakness(
            severity=Severity.BROKEN,
            thing=topic.thing,
            setting="cleanup.policy",
            value=topic.value("cleanup.policy") or "",
            expected="delete",
            because="each event counts here, and compaction keeps the latest record of a Kafka key alone",
            remedy=topic.set_to("cleanup.policy", "delete") + "; or write `semantics: upsert`, where only the latest "
            "counts",
            fault=Fault.COMPACTION,
        )
        return
    if not topic.is_compacted_by_key:
        yield Weakness(
            severity=Severity.RISK,
            thing=topic.thing,
            setting="cleanup.policy",
            value=topic.value("cleanup.policy") or "",
            expected="delete, or Kafka's key as the point's key",
            because="where Kafka's key is another one, compaction takes the only record of a key",
            remedy="write `key: kafka.key`, or a field of it, where records have their key there; or "
            + topic.set_to("cleanup.policy", "delete"),
            fault=Fault.COMPACTION,
        )
    kept = topic.number("delete.retention.ms")
    if kept is not None and timedelta(milliseconds=kept) < topic.needed:
        yield _too_short(topic, "delete.retention.ms", kept, "who reads later never sees that a key was deleted")


def _old_records(topic: JudgedTopic) -> Iterator[Weakness]:
    """Yield what happens to records whose times are old when they are sent: a backfill."""
    latest = max((part.statistics.times.latest_ms for part in topic.scan.partitions), default=0)
    kept = topic.number("retention.ms")
    if topic.value("message.timestamp.type") == "CreateTime" and kept is not None and _FOREVER < kept < latest:
        yield Weakness(
            severity=Severity.RISK,
            thing=topic.thing,
            setting="message.timestamp.type",
            value=f"CreateTime, and records come that are {duration(latest)} older than those before them",
            expected="LogAppendTime, or retention.ms above that",
            because=f"retention.ms ({duration(kept)}) goes by the times of records: a backfill may be deleted at once",
            remedy=topic.set_to("message.timestamp.type", "LogAppendTime"),
            fault=Fault.EXPIRED,
        )


def _largest(topic: JudgedTopic) -> Iterator[Weakness]:
    limit = topic.number("max.message.bytes")
    most = max((part.statistics.bytes_per_batch.most or 0 for part in topic.scan.partitions), default=0)
    if limit is not None and most > limit * _FULL:
        yield Weakness(
            severity=Severity.RISK,
            thing=topic.thing,
            setting="max.message.bytes",
            value=f"{size(limit)}, and a batch has {size(most)}",
            expected=f"at least {size(2 * most)}",
            because="a record that is larger is refused, and lost where its application does not look at the report",
            remedy=topic.set_to("max.message.bytes", 2 * most),
            fault=Fault.FAILED_SENDS,
        )


def _transactions(topic: JudgedTopic) -> Iterator[Weakness]:
    if not topic.kinds(TRANSACTIONAL):
        return
    longest = topic.number("transaction.max.timeout.ms")
    if longest is not None and timedelta(milliseconds=longest) > topic.longest_pending:
        yield _of_broker(
            topic,
            "transaction.max.timeout.ms",
            duration(longest),
            f"at most {duration(int(topic.longest_pending.total_seconds() * 1000))} (`pending.max_age`)",
            "a transaction may be open for longer than a key may be pending: it is missing, and comes after all",
            Fault.OPEN_TRANSACTION,
        )
    memory = topic.number("transactional.id.expiration.ms")
    if memory is not None and timedelta(milliseconds=memory) < topic.needed:
        yield _of_broker(
            topic,
            "transactional.id.expiration.ms",
            duration(memory),
            f"at least {duration(int(topic.needed.total_seconds() * 1000))}",
            "a producer that is away for longer is not fenced when its successor starts: both may write",
            Fault.SENT_AGAIN,
        )


def _offsets(topic: JudgedTopic) -> Iterator[Weakness]:
    minutes = topic.number("offsets.retention.minutes")
    if topic.has_group and minutes is not None and timedelta(minutes=minutes) < topic.needed:
        yield _of_broker(
            topic,
            "offsets.retention.minutes",
            duration(minutes * 60_000),
            f"at least {duration(int(topic.needed.total_seconds() * 1000))}",
            "a group that is stopped for longer has no offsets any more: it skips what it had not read, or reads all "
            "again",
            Fault.SEEK,
        )


def _producer_memory(topic: JudgedTopic) -> Iterator[Weakness]:
    memory = topic.number("producer.id.expiration.ms")
    if memory is None:
        return
    latest = max((part.statistics.times.latest_ms for part in topic.scan.partitions), default=0)
    if timedelta(milliseconds=memory) < _SHORTEST_MEMORY:
        yield _of_broker(
            topic,
            "producer.id.expiration.ms",
            duration(memory),
            "at least 1 h, by default 1 d",
            "a producer that is silent for longer is forgotten, and its next retry is taken a second time",
            Fault.STATE_EXPIRED,
        )
    elif topic.value("message.timestamp.type") == "CreateTime" and latest > memory:
        yield Weakness(
            severity=Severity.RISK,
            thing=topic.thing,
            setting="message.timestamp.type",
            value=f"CreateTime, and records come that are {duration(latest)} older than those before them",
            expected="LogAppendTime",
            because="brokers forget a producer by the times of its records: of a backfill a retry is taken twice",
            remedy=topic.set_to("message.timestamp.type", "LogAppendTime"),
            fault=Fault.OLD_RECORDS,
        )


def _of_broker(topic: JudgedTopic, setting: str, value: str, expected: str, because: str, fault: Fault) -> Weakness:
    return Weakness(
        severity=Severity.RISK,
        thing=f"brokers of topic {topic.name}",
        setting=setting,
        value=value,
        expected=expected,
        because=because,
        remedy=f"{setting}=… in the server.properties of every broker, then restart them one by one",
        fault=fault,
    )


_AGAINST_LOSS: tuple[Callable[[JudgedTopic], Iterator[Weakness]], ...] = (
    _replication,
    _election,
    _retention,
    _compaction,
    _old_records,
    _largest,
    _transactions,
    _offsets,
)
