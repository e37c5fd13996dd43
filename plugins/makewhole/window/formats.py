"""Know the format of a topic's values: which it is, and what describes it."""

from collections.abc import Callable, Mapping

from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_keys import RECORD_KEY_FORMATS, TEXT_KEYS, RecordKeyFormat
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.decode.whole_values import BytesFormat, JsonInStringFormat, TextFormat
from makewhole.model.points import TopicPoint

FORMATS: Mapping[str, Callable[[TopicPoint], ValueFormat]] = {
    "json": lambda _: JSON,
    "json_in_string": lambda _: JsonInStringFormat(),
    "connect": lambda _: ConnectFormat(),
    "debezium": lambda _: ChangeEventFormat(),
    "string": lambda _: TextFormat(),
    "bytes": lambda _: BytesFormat(),
}
"""What makes the format of a point, by the word of its file (`makewhole.model.points.VALUE_FORMATS`)."""


def format_of(point: TopicPoint) -> ValueFormat:
    """Return the format of the values of a topic.

    Raises:
        ConfigurationError: the connection to its registry is not there, or cannot be understood.
    """
    return FORMATS[point.value](point)


def record_key_format_of(point: TopicPoint) -> RecordKeyFormat:
    """Return the format of the record keys of a topic."""
    return RECORD_KEY_FORMATS[point.record_key or TEXT_KEYS.name]
