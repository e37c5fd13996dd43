"""Find the open transactions of a topic, and those of them that hang: these will never be ended (KIP-664).

A transaction holds the partition's stable offset from its first record on. It hangs when the partition has it open and
no coordinator would end it there. The order of the requests keeps a transaction that begins or ends meanwhile from
being taken for hanging: the partition first, then the coordinators, then the partition again.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from aiokafka.protocol.admin import DescribeConfigsRequest

from makewhole.kafka.wire.cluster import Cluster, NotNowError
from makewhole.kafka.wire.transaction_protocol import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError

_TRANSACTION_LOG = "__transaction_state"
_BROKER_RESOURCE = 4
_AUTHORIZER, _LONGEST_TIMEOUT = "authorizer.class.name", "transaction.max.timeout.ms"
_DEFAULT_LONGEST_TIMEOUT_MS = 900_000
_OVERDUE_MS = 60_000
_ENDING = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_UNKNOWN_TRANSACTIONAL_ID = 105
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, order=True)
class OpenTransaction:
    """A transaction that is open in a partition, `first_offset` its first record's.

    `transactional_id`, `state`, `started_at_ms` and `timeout_ms` come from the coordinator, None where no coordinator
    lists this producer. Times in ms of the epoch; `last_timestamp_ms` is the producer's own.
    """

    partition: int
    first_offset: int
    producer_id: int
    producer_epoch: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transactional_id: str | None = None
    state: str | None = None
    started_at_ms: int | None = None
    timeout_ms: int | None = None
    is_hanging: bool = False


class DescribedTransaction(NamedTuple):
    """A coordinator's description of a transactional id."""

    transactional_id: str
    state: str
    timeout_ms: int
    started_at_ms: int
    producer_id: int
    producer_epoch: int
    partitions: frozenset[int]


class CoordinatorRights(NamedTuple):
    """Settings of a broker: whether it may hide transactions from us, and the longest timeout of one."""

    may_be_hidden: bool
    longest_timeout_ms: int


def open_transactions(connection: KafkaConnection, topic: str) -> tuple[OpenTransaction, ...]:
    """Return the transactions that are open in the topic's partitions now, by partition and offset.

    Raises:
        ConfigurationError: the topic does not exist.
        TransientError: a leader or a coordinator does not answer: what it would say cannot be assumed.
        PermanentError: the brokers refuse us, or are older than Kafka 3.0.
    """
    with Cluster(connection) as cluster:
        return cluster.run(find_open_transactions(cluster, topic))


async def find_open_transactions(
    cluster: Cluster, topic: str, partitions: Collection[int] | None = None
) -> tuple[OpenTransaction, ...]:
    """Return the open transactions of some partitions (None: all) over existing connections; runs on the cluster's
    loop."""

    async def ask(what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        return await cluster.retry(f"{what} of topic {topic}", attempt)

    transactions = await ask("producers", lambda: _in_partitions(cluster, topic, partitions))
    if not transactions:
        return ()
    producers = {transaction.producer_id for transaction in transactions}
    known = await ask("transactions", lambda: _known_to_coordinators(cluster, topic, producers))
    rights = await ask("rights for transactions", lambda: _rights(cluster, topic))
    still = set(map(_identity, await ask("producers", lambda: _in_partitions(cluster, topic, partitions))))
    left = [transaction for transaction in transactions if _identity(transaction) in still]
    now_ms = int(time.time() * 1000)
    return tuple(
        sorted(_with_state(transaction, known.get(transaction.producer_id), rights, now_ms) for transaction in left)
    )


def _identity(transaction: OpenTransaction) -> tuple[int, int, int]:
    return transaction.partition, transaction.producer_id, transaction.first_offset


async def _in_partitions(cluster: Cluster, topic: str, wanted: Collection[int] | None) -> list[OpenTransaction]:
    by_leader = defaultdict(list)
    for partition, leader in (await cluster.topic(topic)).leaders.items():
        if wanted is None or partition in wanted:
            by_leader[leader].append(partition)
    transactions = []
    for leader, partitions in by_leader.items():
        response = await cluster.ask(leader, DescribeProducersRequest(topic, partitions))
        for partition, code, _, producers, _ in response.topics[0][1]:
            cluster.raise_for_code(code, f"{topic} partition {partition}")
            transactions += [_open_transaction(partition, producer) for producer in producers if producer[5] >= 0]
    return transactions


def _open_transaction(partition: int, producer: tuple[int, ...]) -> OpenTransaction:
    producer_id, epoch, _, last_timestamp, coordinator_epoch, first_offset, _ = producer
    return OpenTransaction(
        partition=partition,
        first_offset=first_offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_timestamp_ms=last_timestamp,
        coordinator_epoch=coordinator_epoch,
    )


async def _known_to_coordinators(
    cluster: Cluster, topic: str, producers: set[int]
) -> Mapping[int, DescribedTransaction]:
    """Return the transactions of these producers, by producer id. Every coordinator has answered."""
    try:
        coordinators = set((await cluster.topic(_TRANSACTION_LOG, is_fresh=True)).leaders.values())
    except ConfigurationError:  # the cluster never had a transaction
        return {}
    if -1 in coordinators:
        raise NotNowError(f"a partition of {_TRANSACTION_LOG} has no leader, so a coordinator is missing")
    known = {}
    for node in coordinators:
        response = await cluster.ask(node, ListTransactionsRequest(producers))
        cluster.raise_for_code(response.error_code, f"transactions of broker {node}")
        ids = [listed[0] for listed in response.transactions]
        if ids:
            for transaction in await _described(cluster, topic, node, ids):
                known[transaction.producer_id] = transaction
    return known


async def _described(cluster: Cluster, topic: str, node: int, ids: list[str]) -> list[DescribedTransaction]:
    response = await cluster.ask(node, DescribeTransactionsRequest(ids))
    described = []
    for code, name, state, timeout_ms, started_at_ms, producer_id, epoch, topics, _ in response.transactions:
        if code == _UNKNOWN_TRANSACTIONAL_ID:  # it expired in between
            continue
        cluster.raise_for_code(code, "a transactional id")
        partitions = frozenset(partition for named, members, _ in topics if named == topic for partition in members)
        described.append(DescribedTransaction(name, state, timeout_ms, started_at_ms, producer_id, epoch, partitions))
    return described


async def _rights(cluster: Cluster, topic: str) -> CoordinatorRights:
    """Return whether a broker may hide transactions, which its answers do not show, and the longest timeout."""
    node = next(iter((await cluster.topic(topic)).leaders.values()))
    request = DescribeConfigsRequest([(_BROKER_RESOURCE, str(node), [_AUTHORIZER, _LONGEST_TIMEOUT])])
    response = await cluster.ask(node, request)
    code, _, _, _, entries = response.resources[0]
    values = {entry[0]: entry[1] for entry in entries} if code == 0 else {}
    return CoordinatorRights(
        may_be_hidden=values.get(_AUTHORIZER) != "",
        longest_timeout_ms=int(values.get(_LONGEST_TIMEOUT) or _DEFAULT_LONGEST_TIMEOUT_MS),
    )


def _with_state(
    transaction: OpenTransaction, known: DescribedTransaction | None, rights: CoordinatorRights, now_ms: int
) -> OpenTransaction:
    if known is None:
        is_older = now_ms - transaction.last_timestamp_ms > rights.longest_timeout_ms + _OVERDUE_MS
        return replace(transaction, is_hanging=is_older or not rights.may_be_hidden)
    will_end = known.state in _ENDING and transaction.partition in known.partitions
    is_overdue = now_ms - known.started_at_ms > known.timeout_ms + _OVERDUE_MS
    return replace(
        transaction,
        transactional_id=known.transactional_id,
        state=known.state,
        started_at_ms=known.started_at_ms if known.started_at_ms >= 0 else None,
        timeout_ms=known.timeout_ms,
        is_hanging=not will_end or transaction.producer_epoch > known.producer_epoch or is_overdue,
    )
