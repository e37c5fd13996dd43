"""Encode what is sent to a topic in the format of its values."""

from makewhole.compute.keys import KeyProblem
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TopicPoint
from makewhole.model.refusal import RefusalCode
from makewhole.window.formats import format_of


def encoded(point: TopicPoint, payload: bytes) -> bytes:
    """Return the value of a record with the fields of a JSON object, in the format of its topic's values.

    Raises:
        RefusedError: they do not fit the schema by which the topic's records are written now.
    """
    try:
        return format_of(point).encode(payload)
    except KeyProblem as problem:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, f"no record of {point.name} can be made of it in {point.value}: {problem}"
        ) from None
