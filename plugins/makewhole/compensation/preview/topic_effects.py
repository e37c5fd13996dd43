"""Read who gets the records that a plan sends to a topic."""

from makewhole.compensation.execution.targets import Target
from makewhole.compensation.preview.dry_report import TopicEffects
from makewhole.kafka.topic_readers import topic_readers, with_records
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import MakewholeError
from makewhole.model.points import TopicPoint

_PATIENCE_SECONDS = 10.0


def is_topic(target: Target) -> bool:
    """Tell whether records are sent to a target."""
    return isinstance(target.point, TopicPoint)


def read_topic_effects(target: Target) -> TopicEffects:
    """Ask which consumer groups read a topic. What cannot be told is said, and no reason to have no dry run."""
    point, connection = target.point, target.connection
    assert isinstance(point, TopicPoint) and isinstance(connection, KafkaConnection)
    try:
        found = topic_readers(connection, point.topic, patience_seconds=_PATIENCE_SECONDS)
        groups = with_records(connection, point.topic, found)
    except MakewholeError as error:
        return TopicEffects(target=point.name, place=point.place, silent=str(error))
    return TopicEffects(target=point.name, place=point.place, groups=groups)
