"""Read who gets the records that a plan sends to a topic."""

from collections.abc import Mapping

from makewhole.compensation.execution.targets import Target
from makewhole.compensation.preview.dry_report import ReadingSink, TopicEffects
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.topic_readers import reading_group, topic_readers, with_records
from makewhole.model.connection import KafkaConnection, kafka_of
from makewhole.model.errors import MakewholeError
from makewhole.model.hops import Hop
from makewhole.model.points import TopicPoint, has_log
from makewhole.window.readers.hop_offsets import read_hop_offsets
from makewhole.window.readers.standing_text import unknown_standing

_PATIENCE_SECONDS = 10.0


def is_topic(target: Target) -> bool:
    """Return whether records are sent to a target."""
    return has_log(target.point)


def read_topic_effects(target: Target, targets: Mapping[str, Target]) -> TopicEffects:
    """Ask which consumer groups read a topic, and sinks by their own progress; `targets`: all points. What cannot be
    read is named, and no reason to have no dry run."""
    point, connection = target.point, kafka_of(target.connection)
    assert has_log(point), point.name
    of_sinks = [hop for hop in target.hops if hop.progress is not None and hop.target in targets]
    copies = {hop.consumer_group for hop in of_sinks} - {hop.consumer_group for hop in target.hops if not hop.progress}
    try:
        readers = topic_readers(connection, point.topic, patience_seconds=_PATIENCE_SECONDS)
        groups = with_records(connection, point.topic, [reader for reader in readers if reader.group not in copies])
    except MakewholeError as error:
        return TopicEffects(target=point.name, place=point.place, silent=str(error))
    sinks = tuple(_sink(hop, point, connection, targets[hop.target]) for hop in of_sinks)
    return TopicEffects(target=point.name, place=point.place, groups=groups, sinks=sinks)


def _sink(hop: Hop, point: TopicPoint, connection: KafkaConnection, store: Target) -> ReadingSink:
    reader, group = str(hop.reader), hop.consumer_group
    try:
        with TopicLog(connection, point.topic, patience_seconds=_PATIENCE_SECONDS) as log:
            offsets = read_hop_offsets(log, hop, store.point, store.connection)
            assert offsets is not None
            standing = reading_group(log, group or reader, offsets.offsets)
        (counted,) = with_records(connection, point.topic, [standing])
    except MakewholeError as error:
        return ReadingSink(hop=hop.name, reader=reader, group=group, standing=None, silent=str(error))
    unknown = tuple(filter(None, (unknown_standing(hop, offsets, point.topic, at) for at in sorted(offsets.unknown))))
    return ReadingSink(hop=hop.name, reader=reader, group=group, standing=counted, unknown=unknown)
