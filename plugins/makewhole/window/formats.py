"""Know the format of a topic's values: which it is, and what describes it."""

from collections.abc import Callable, Mapping

from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.model.points import TopicPoint

FORMATS: Mapping[str, Callable[[TopicPoint], ValueFormat]] = {"json": lambda _: JSON}
"""What makes the format of a point, by the word of its file (`makewhole.model.points.VALUE_FORMATS`)."""


def format_of(point: TopicPoint) -> ValueFormat:
    """Return the format of the values of a topic.

    Raises:
        ConfigurationError: the connection to its registry is not there, or cannot be understood.
    """
    return FORMATS[point.value](point)
