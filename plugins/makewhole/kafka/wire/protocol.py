"""Define the Kafka requests that aiokafka lacks: topic ids in Metadata and Fetch, and OffsetForLeaderEpoch.

Field order and types are those of Kafka's own message definitions (Metadata v12, Fetch v13, OffsetForLeaderEpoch v3).
Fetch by topic id lets the broker itself refuse a topic that was deleted and made again under the same name (KIP-516).
aiokafka's protocol classes are semi-internal and untyped: its version is pinned, and it stays in this folder.
"""

# mypy: disable-error-code="misc"

import struct
from collections.abc import Mapping
from io import BytesIO

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactBytes,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

NO_TOPIC_ID = bytes(16)
NO_EPOCH = -1
_DIVERGING_EPOCH_TAG = 0
_EPOCH_END = struct.Struct(">iq")


class Uuid(AbstractType[bytes]):
    """16 raw bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


class MetadataResponseV12(Response):
    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString()),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class MetadataRequestV12(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 12
    RESPONSE_TYPE = MetadataResponseV12
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("topic", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicMetadataRequest(Request[MetadataRequestV12]):
    """Request for the brokers, and for a topic's id and leaders. Never creates the topic."""

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[MetadataRequestV12]) -> MetadataRequestV12:
        return request_struct_class([(NO_TOPIC_ID, self._topic, {})], False, False, {})


class BrokersRequest(Request[MetadataRequestV12]):
    """Request for the brokers alone."""

    API_KEY = 3

    def build(self, request_struct_class: type[MetadataRequestV12]) -> MetadataRequestV12:
        return request_struct_class([], False, False, {})


class FetchResponseV13(Response):
    API_KEY = 1
    API_VERSION = 13
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("session_id", Int32),
        (
            "topics",
            CompactArray(
                ("topic_id", Uuid),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("high_watermark", Int64),
                        ("last_stable_offset", Int64),
                        ("log_start_offset", Int64),
                        (
                            "aborted_transactions",
                            CompactArray(("producer_id", Int64), ("first_offset", Int64), ("tags", TaggedFields)),
                        ),
                        ("preferred_read_replica", Int32),
                        ("records", CompactBytes),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class FetchRequestV13(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 1
    API_VERSION = 13
    RESPONSE_TYPE = FetchResponseV13
    SCHEMA = Schema(
        ("replica_id", Int32),
        ("max_wait_time", Int32),
        ("min_bytes", Int32),
        ("max_bytes", Int32),
        ("isolation_level", Int8),
        ("session_id", Int32),
        ("session_epoch", Int32),
        (
            "topics",
            CompactArray(
                ("topic_id", Uuid),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("current_leader_epoch", Int32),
                        ("fetch_offset", Int64),
                        ("last_fetched_epoch", Int32),
                        ("log_start_offset", Int64),
                        ("max_bytes", Int32),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        (
            "forgotten_topics",
            CompactArray(("topic_id", Uuid), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)),
        ),
        ("rack_id", CompactString()),
        ("tags", TaggedFields),
    )


def diverging_offset(tags: Mapping[int, bytes]) -> int | None:
    """Return the offset from which on the leader's log is not the one that was read, by a fetch's tags (KIP-595)."""
    epoch_end = tags.get(_DIVERGING_EPOCH_TAG)
    return None if epoch_end is None else int(_EPOCH_END.unpack_from(epoch_end)[1])


class PartitionFetchRequest(Request[FetchRequestV13]):
    """Fetch of one partition of one topic incarnation, from `offset` on. `isolation` 0 = uncommitted, 1 = committed.

    A broker that leads under another epoch than `leader_epoch` refuses; by `last_epoch`, that of the record before
    `offset`, it reports that the log was truncated behind it (KIP-320); -1 asks for neither.
    """

    API_KEY = 1

    def __init__(
        self,
        *,
        topic_id: bytes,
        partition: int,
        offset: int,
        leader_epoch: int = NO_EPOCH,
        last_epoch: int = NO_EPOCH,
        isolation: int,
        max_bytes: int,
        max_wait_ms: int,
    ) -> None:
        self._partition: tuple[object, ...] = (partition, leader_epoch, offset, last_epoch, -1, max_bytes, {})
        self._topic_id = topic_id
        self._isolation = isolation
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms

    def build(self, request_struct_class: type[FetchRequestV13]) -> FetchRequestV13:
        topics: list[tuple[object, ...]] = [(self._topic_id, [self._partition], {})]
        return request_struct_class(
            -1, self._max_wait_ms, 1, self._max_bytes, self._isolation, 0, -1, topics, [], "", {}
        )


class OffsetForLeaderEpochResponseV3(Response):
    API_KEY = 23
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("error_code", Int16), ("partition", Int32), ("leader_epoch", Int32), ("end_offset", Int64)),
                ),
            ),
        ),
    )


class OffsetForLeaderEpochRequestV3(RequestStruct):
    API_KEY = 23
    API_VERSION = 3
    RESPONSE_TYPE = OffsetForLeaderEpochResponseV3
    SCHEMA = Schema(
        ("replica_id", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("partition", Int32), ("current_leader_epoch", Int32), ("leader_epoch", Int32)),
                ),
            ),
        ),
    )


class LeaderEpochEndRequest(Request[OffsetForLeaderEpochRequestV3]):
    """Request for the end of a leader epoch of each of some partitions (KIP-101, KIP-320). A leader of another
    `leader_epoch` refuses."""

    API_KEY = 23

    def __init__(self, topic: str, epochs: Mapping[int, int], *, leader_epoch: int = NO_EPOCH) -> None:
        self._topics = [(topic, [(partition, leader_epoch, epoch) for partition, epoch in epochs.items()])]

    def build(self, request_struct_class: type[OffsetForLeaderEpochRequestV3]) -> OffsetForLeaderEpochRequestV3:
        return request_struct_class(-1, self._topics)
