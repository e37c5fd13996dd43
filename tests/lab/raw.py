"""Send requests that no client library would send: batches of any producer, epoch and sequence, transactional or not.

Built on aiokafka's protocol classes, like makewhole's own reader; one short connection per request.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import KafkaConnectionError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from makewhole.kafka.wire.protocol import NO_TOPIC_ID, MetadataRequestV12
from makewhole.kafka.wire.transaction_protocol import DescribeProducersRequest
from makewhole.stack.ports import LOOPBACK

_TIMEOUT_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
_GROUPS, _TRANSACTIONS = 0, 1
_UNCLEAN = 1
_NOT_YET = (6, 7, 14, 15, 16, 51, 84)
"""Answers that a moment mends: no leader here, timed out, coordinator loading, absent or moved, transaction ending,
and a quorum without a leader."""

Record = tuple[bytes | None, bytes | None]
"""Key and value."""


class AllTopicsRequest(Request[MetadataRequestV12]):  # type: ignore[misc]
    """Brokers and all topics, or the one that is named, as one broker knows them."""

    API_KEY = 3

    def __init__(self, topic: str | None = None) -> None:
        self._topics: list[tuple[object, ...]] | None = None if topic is None else [(NO_TOPIC_ID, topic, {})]

    def build(self, request_struct_class: type[MetadataRequestV12]) -> MetadataRequestV12:
        return request_struct_class(self._topics, False, False, {})


class ElectLeadersResponseV1(Response):  # type: ignore[misc]
    API_KEY = 43
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("partition", Int32), ("error_code", Int16), ("error_message", String("utf-8"))),
                ),
            ),
        ),
    )


class ElectLeadersRequestV1(RequestStruct):  # type: ignore[misc]
    API_KEY = 43
    API_VERSION = 1
    RESPONSE_TYPE = ElectLeadersResponseV1
    SCHEMA = Schema(
        ("election_type", Int8),
        ("topics", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))),
        ("timeout_ms", Int32),
    )


class UncleanElectionRequest(Request[ElectLeadersRequestV1]):  # type: ignore[misc]
    """Make a replica that is not in sync the leader of a partition without one (KIP-460). Any broker passes it on."""

    API_KEY = 43

    def __init__(self, topic: str, partition: int) -> None:
        self._topics: list[tuple[object, ...]] = [(topic, [partition])]

    def build(self, request_struct_class: type[ElectLeadersRequestV1]) -> ElectLeadersRequestV1:
        return request_struct_class(_UNCLEAN, self._topics, int(_TIMEOUT_SECONDS * 1000))


@dataclass(frozen=True, kw_only=True)
class ProducerId:
    """Hold what a broker gave a producer, or what a producer claims that it was given."""

    id: int
    epoch: int = 0


NO_PRODUCER = ProducerId(id=-1, epoch=-1)


def send(port: int, request: Any, timeout_seconds: float = _TIMEOUT_SECONDS) -> Any:
    """One request to the broker at this port; its answer.

    Raises:
        OSError: no broker there, or no answer in time.
    """
    return asyncio.run(_send(port, request, timeout_seconds))


async def _send(port: int, request: Any, timeout_seconds: float) -> Any:
    async def ask() -> Any:
        connection = await create_conn(LOOPBACK, port)
        try:
            return await connection.send(request)
        except KafkaConnectionError as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    return await asyncio.wait_for(ask(), timeout_seconds)


def batch(
    records: Iterable[Record],
    *,
    producer: ProducerId = NO_PRODUCER,
    base_sequence: int = -1,
    is_transactional: bool = False,
    codec: int = 0,
    timestamp_ms: int | None = None,
) -> bytes:
    """A record batch as it goes over the wire. Records without a timestamp are of now."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=is_transactional,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=base_sequence,
        batch_size=1 << 20,
    )
    moment = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    for number, (key, value) in enumerate(records):
        assert builder.append(number, timestamp=moment, key=key, value=value, headers=[]) is not None, "batch is full"
    return bytes(builder.build())


def produce(
    port: int,
    topic: str,
    partition: int,
    records: bytes,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> int:
    """Send a batch to the partition's leader; the offset of its first record.

    Raises:
        aiokafka.errors.KafkaError: what the broker says of it.
    """
    request = ProduceRequest(transactional_id, acks, int(_TIMEOUT_SECONDS * 1000), [(topic, [(partition, records)])])
    answer = _patiently(port, request, lambda reply: int(reply.topics[0][1][0][1]))
    return int(answer.topics[0][1][0][2])


def init_producer_id(port: int, transactional_id: str | None = None, timeout_ms: int = 60_000) -> ProducerId:
    """A new producer id from any broker; with a transactional id, from its coordinator (`coordinator` finds it)."""
    answer = _patiently(port, InitProducerIdRequest(transactional_id, timeout_ms), lambda reply: int(reply.error_code))
    return ProducerId(id=answer.producer_id, epoch=answer.producer_epoch)


def coordinator(port: int, transactional_id: str) -> int:
    """The number of the broker that coordinates this id's transactions; any broker knows it."""
    request = FindCoordinatorRequest(transactional_id, _TRANSACTIONS)
    return int(_patiently(port, request, lambda answer: int(answer.error_code)).coordinator_id)


def group_coordinator(port: int, group: str) -> int | None:
    """The broker that coordinates the group, as the broker at this port knows; None when it knows none."""
    answer = send(port, FindCoordinatorRequest(group, _GROUPS))
    return None if answer.error_code else int(answer.coordinator_id)


def coordinates(port: int, group: str) -> bool:
    """Whether the broker at this port has taken up coordinating the group."""
    return bool(send(port, OffsetFetchRequest(group, None)).error_code == 0)


def add_partitions(
    port: int, transactional_id: str, producer: ProducerId, topic: str, partitions: Sequence[int]
) -> None:
    """Report to the coordinator at this port that the open transaction takes in these partitions."""
    request = AddPartitionsToTxnRequest(transactional_id, producer.id, producer.epoch, [(topic, list(partitions))])
    _patiently(port, request, lambda answer: next((code for _, parts in answer.errors for _, code in parts if code), 0))


def end_transaction(port: int, transactional_id: str, producer: ProducerId, *, is_commit: bool) -> None:
    """Have the coordinator at this port commit or abort."""
    request = EndTxnRequest(transactional_id, producer.id, producer.epoch, is_commit)
    _patiently(port, request, lambda answer: int(answer.error_code))


def producers(port: int, topic: str, partition: int) -> list[ProducerId]:
    """The producers that the partition's leader remembers; a new partition's has to take it up first."""
    answer = _patiently(port, DescribeProducersRequest(topic, [partition]), lambda reply: int(reply.topics[0][1][0][1]))
    _, _, _, ids, *_ = answer.topics[0][1][0]
    return [ProducerId(id=producer[0], epoch=producer[1]) for producer in ids]


def _patiently(port: int, request: Any, code_of: Any) -> Any:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = send(port, request)
        code = code_of(answer)
        if code == 0:
            return answer
        if code not in _NOT_YET or time.monotonic() > deadline:
            raise for_code(code)(f"{type(request).__name__} to port {port}")
        time.sleep(0.05)
