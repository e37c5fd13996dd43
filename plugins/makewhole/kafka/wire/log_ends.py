"""Define the request for a partition's start, end or stable offset with the leader epoch of the broker that answers.

aiokafka's ListOffsets stops at version 3, which does not report the epoch. Field order and types are those of Kafka's
own message definition (ListOffsets v4, KIP-320).
"""

# mypy: disable-error-code="misc"

from collections.abc import Iterable

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Int64, Schema, String

EARLIEST_MS, LATEST_MS = -2, -1
UNCOMMITTED, COMMITTED = 0, 1
_CONSUMER = -1
_ANY_EPOCH = -1


class ListOffsetsResponseV4(Response):
    API_KEY = 2
    API_VERSION = 4
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
                        ("error_code", Int16),
                        ("timestamp", Int64),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                    ),
                ),
            ),
        ),
    )


class ListOffsetsRequestV4(RequestStruct):
    API_KEY = 2
    API_VERSION = 4
    RESPONSE_TYPE = ListOffsetsResponseV4
    SCHEMA = Schema(
        ("replica_id", Int32),
        ("isolation_level", Int8),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("partition", Int32), ("current_leader_epoch", Int32), ("timestamp", Int64)),
                ),
            ),
        ),
    )


class LogEndsRequest(Request[ListOffsetsRequestV4]):
    """Request for the first offset at `timestamp_ms`, or one of the two ends, of partitions that one broker leads."""

    API_KEY = 2

    def __init__(self, topic: str, partitions: Iterable[int], timestamp_ms: int, isolation: int) -> None:
        self._topics = [(topic, [(partition, _ANY_EPOCH, timestamp_ms) for partition in partitions])]
        self._isolation = isolation

    def build(self, request_struct_class: type[ListOffsetsRequestV4]) -> ListOffsetsRequestV4:
        return request_struct_class(_CONSUMER, self._isolation, self._topics)
