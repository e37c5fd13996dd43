"""Infer from the newest batches of a log how its producers are set; what a log does not show is not known.

Kafka keeps no client's configuration. A batch shows whether its producer is idempotent (it has a producer id) or
transactional. An idempotent producer has acks=all and retries, since no client allows it otherwise: KIP-98, KIP-679.
Of a producer without idempotence a log shows neither.
"""

from collections.abc import Iterator

from makewhole.kafka.scan.batch_statistics import CODECS, IDEMPOTENT, PLAIN, TRANSACTIONAL
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.text import counted
from makewhole.window.delivery.topics import JudgedTopic

_IDEMPOTENCE = "enable.idempotence=true in the producer's configuration"
_TRANSACTIONS = (
    "transactional.id=… in the producer's configuration, with the offsets of what it sent in the same transaction; or "
    "keep `delivery: at-least-once`, and have what reads it deduplicate"
)


def weak_producers(topic: JudgedTopic, *, is_copied: bool) -> Iterator[Weakness]:
    """Yield what the producers of a topic do not give. `is_copied`: what writes it reads another topic."""
    plain, idempotent = topic.kinds(PLAIN), topic.kinds(IDEMPOTENT)
    seen = plain + idempotent + topic.kinds(TRANSACTIONAL)
    thing = f"producers of topic {topic.name}"
    if not seen:
        yield Weakness(
            severity=Severity.UNKNOWN,
            thing=thing,
            setting="acks, enable.idempotence",
            value="no record is in the log",
            expected="acks=all, enable.idempotence=true",
            because="what sends to it is only known by what it has sent",
            remedy=_IDEMPOTENCE,
            fault=Fault.ACKS_OF_ONE,
        )
        return
    if plain and topic.forbids_repeats:
        yield Weakness(
            severity=Severity.BROKEN,
            thing=thing,
            setting="enable.idempotence",
            value=f"false for {plain} of the newest {counted(seen, 'record')}",
            expected="true",
            because="a send whose answer is lost is sent again, and is in the log twice",
            remedy=_IDEMPOTENCE,
            fault=Fault.NO_IDEMPOTENCE,
        )
    if plain and topic.forbids_loss:
        yield Weakness(
            severity=Severity.UNKNOWN,
            thing=thing,
            setting="acks",
            value=f"not known of {plain} of the newest {counted(seen, 'record')}, which have no producer id",
            expected="all",
            because="with acks=0 or 1 acknowledged records are lost when their leader dies",
            remedy=f"{_IDEMPOTENCE}, which means acks=all",
            fault=Fault.ACKS_OF_ONE,
        )
    if idempotent and topic.forbids_repeats:
        yield Weakness(
            severity=Severity.RISK,
            thing=thing,
            setting="transactional.id",
            value=f"none for {idempotent} of the newest {counted(seen, 'record')}",
            expected="one that stays the same when the producer starts again",
            because="idempotence ends with the session: what the application sends again is in the log twice",
            remedy=_TRANSACTIONS,
            fault=Fault.COMMITTED_AFTER if is_copied else Fault.SENT_AGAIN,
        )


def inferred(topic: JudgedTopic) -> dict[str, object]:
    """Return what the newest batches show of the producers, for the report: records by kind of producer, batches by
    codec, and the oldest and the newest of their times in milliseconds."""
    parts = [part.statistics for part in topic.scan.partitions]
    codecs: dict[str, int] = {}
    for part in parts:
        for codec, total in part.codecs.items():
            name = CODECS[codec] if codec < len(CODECS) else f"unknown ({codec})"
            codecs[name] = codecs.get(name, 0) + total.batches
    oldest = [part.times.oldest_ms for part in parts if part.times.oldest_ms is not None]
    newest = [part.times.newest_ms for part in parts if part.times.newest_ms is not None]
    return {
        "records": {kind: topic.kinds(kind) for kind in (PLAIN, IDEMPOTENT, TRANSACTIONAL)},
        "batches_by_codec": dict(sorted(codecs.items())),
        "oldest_ms": min(oldest, default=None),
        "newest_ms": max(newest, default=None),
    }
