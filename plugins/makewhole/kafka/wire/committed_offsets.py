"""Define the request for the offsets of a consumer group with the leader epoch that each was committed with.

aiokafka's OffsetFetch stops at version 3, which does not report the epoch. Field order and types are those of Kafka's
own message definition (OffsetFetch v5, KIP-320).
"""

# mypy: disable-error-code="misc"

from collections.abc import Sequence

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String


class OffsetFetchResponseV5(Response):
    API_KEY = 9
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", String("utf-8")),
                        ("error_code", Int16),
                    ),
                ),
            ),
        ),
        ("error_code", Int16),
    )


class OffsetFetchRequestV5(RequestStruct):
    API_KEY = 9
    API_VERSION = 5
    RESPONSE_TYPE = OffsetFetchResponseV5
    SCHEMA = Schema(
        ("group", String("utf-8")),
        ("topics", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))),
    )


class CommittedOffsetsRequest(Request[OffsetFetchRequestV5]):
    """Request for what a group has committed in partitions of a topic; -1 stands for no offset, and for no epoch."""

    API_KEY = 9

    def __init__(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        self._group = group
        self._topics = [(topic, list(partitions))]

    def build(self, request_struct_class: type[OffsetFetchRequestV5]) -> OffsetFetchRequestV5:
        return request_struct_class(self._group, self._topics)
