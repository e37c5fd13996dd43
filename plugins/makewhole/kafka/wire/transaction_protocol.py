"""Define the requests of `kafka-transactions.sh` (KIP-664): producers of a partition, transactions of a coordinator.

Field order and types are those of Kafka's own message definitions (DescribeProducers, DescribeTransactions and
ListTransactions v0: Kafka 3.0 and newer). aiokafka's protocol classes are semi-internal: they stay in this folder.
"""

# mypy: disable-error-code="misc"

from collections.abc import Collection

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields


class DescribeProducersResponseV0(Response):
    API_KEY = 61
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString()),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("error_message", CompactString()),
                        (
                            "active_producers",
                            CompactArray(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp", Int64),
                                ("coordinator_epoch", Int32),
                                ("current_transaction_start_offset", Int64),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class DescribeProducersRequestV0(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 61
    API_VERSION = 0
    RESPONSE_TYPE = DescribeProducersResponseV0
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic", CompactString()), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)),
        ),
        ("tags", TaggedFields),
    )


class DescribeProducersRequest(Request[DescribeProducersRequestV0]):
    """Request for the producers that a leader remembers in partitions, which it must all lead."""

    API_KEY = 61

    def __init__(self, topic: str, partitions: Collection[int]) -> None:
        self._topics: list[tuple[object, ...]] = [(topic, list(partitions), {})]

    def build(self, request_struct_class: type[DescribeProducersRequestV0]) -> DescribeProducersRequestV0:
        return request_struct_class(self._topics, {})


class DescribeTransactionsResponseV0(Response):
    API_KEY = 65
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "transactions",
            CompactArray(
                ("error_code", Int16),
                ("transactional_id", CompactString()),
                ("state", CompactString()),
                ("timeout_ms", Int32),
                ("started_at_ms", Int64),
                ("producer_id", Int64),
                ("producer_epoch", Int16),
                (
                    "topics",
                    CompactArray(
                        ("topic", CompactString()), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class DescribeTransactionsRequestV0(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 65
    API_VERSION = 0
    RESPONSE_TYPE = DescribeTransactionsResponseV0
    SCHEMA = Schema(("transactional_ids", CompactArray(CompactString())), ("tags", TaggedFields))


class DescribeTransactionsRequest(Request[DescribeTransactionsRequestV0]):
    """Request for what a coordinator knows of its transactional ids."""

    API_KEY = 65

    def __init__(self, transactional_ids: Collection[str]) -> None:
        self._transactional_ids = list(transactional_ids)

    def build(self, request_struct_class: type[DescribeTransactionsRequestV0]) -> DescribeTransactionsRequestV0:
        return request_struct_class(self._transactional_ids, {})


class ListTransactionsResponseV0(Response):
    API_KEY = 66
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("unknown_state_filters", CompactArray(CompactString())),
        (
            "transactions",
            CompactArray(
                ("transactional_id", CompactString()),
                ("producer_id", Int64),
                ("state", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class ListTransactionsRequestV0(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 66
    API_VERSION = 0
    RESPONSE_TYPE = ListTransactionsResponseV0
    SCHEMA = Schema(
        ("state_filters", CompactArray(CompactString())),
        ("producer_id_filters", CompactArray(Int64)),
        ("tags", TaggedFields),
    )


class ListTransactionsRequest(Request[ListTransactionsRequestV0]):
    """Request for the transactional ids of producers that one broker coordinates and this user may describe."""

    API_KEY = 66

    def __init__(self, producer_ids: Collection[int]) -> None:
        self._producer_ids = list(producer_ids)

    def build(self, request_struct_class: type[ListTransactionsRequestV0]) -> ListTransactionsRequestV0:
        return request_struct_class([], self._producer_ids, {})
