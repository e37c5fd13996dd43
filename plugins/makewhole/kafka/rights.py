"""Ask the brokers what this client may do with a topic, and whether it may write by an identity of ours. Nothing is
changed by asking."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.transaction import EndTxnRequest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic

from makewhole.kafka.replay import MARKER_TOPIC, client_properties
from makewhole.kafka.wire.cluster import Cluster
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import PermanentError, TransientError

_SECONDS = 15.0
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,
)
READ, WRITE = AclOperation.READ, AclOperation.WRITE
_NONE = -1
"""The id of no producer, and the generation of no group."""


@dataclass(frozen=True, kw_only=True)
class MissingRight:
    """A right that a client lacks, as the end of a sentence, and the command that grants it."""

    right: str
    command: str


def missing_rights(connection: KafkaConnection, topic: str, needed: Collection[AclOperation]) -> tuple[str, ...]:
    """Return the names of those operations that this client may not do with a topic, in capitals as Kafka's ACLs have
    them. Brokers without an authorizer allow all.

    Raises:
        PermanentError: the brokers refuse to describe the topic, or there is none.
        TransientError: they do not answer.
    """
    try:
        allowed = _allowed(_admin(connection), topic)
    except KafkaException as error:
        code = error.args[0].code()
        message = f"Kafka {connection.id}: topic {topic} cannot be described ({error.args[0].name()})"
        if code in _REFUSED or code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise PermanentError(message) from error
        raise TransientError(message) from error
    except TimeoutError as error:
        raise TransientError(f"Kafka {connection.id}: no answer about topic {topic} in {_SECONDS:.0f} s") from error
    return () if allowed is None else tuple(operation.name for operation in needed if operation not in allowed)


def missing_to_write(connection: KafkaConnection, identity: str) -> Iterator[MissingRight]:
    """Yield what a client may not do and has to, beside writing to a topic, to write in transactions under an identity
    of ours: a transactional id, which is the group of its marker, too.

    Raises:
        PermanentError: the brokers refuse the client.
        TransientError: they do not answer.
    """
    prefix = f"{identity.partition('-')[0]}-"
    with Cluster(connection, patience_seconds=_SECONDS) as cluster:
        # Brokers ask for the right first. Behind it they refuse both: there is no such producer, and no such member.
        ended = cluster.run(
            cluster.retry(
                f"answer about transactional id {identity}",
                lambda: cluster.ask_any(EndTxnRequest(identity, _NONE, _NONE, False)),
            )
        )
        beaten = cluster.run(
            cluster.retry(
                f"answer about group {identity}",
                lambda: cluster.ask_any(HeartbeatRequest(identity, _NONE, "makewhole")),
            )
        )
    if ended.error_code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        yield _missing("Write", f"transactional ids {prefix}…", f"--transactional-id {prefix}")
    if beaten.error_code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        yield _missing("Read", f"groups {prefix}…", f"--group {prefix}")
    yield from _missing_at_markers(connection)


def _missing_at_markers(connection: KafkaConnection) -> Iterator[MissingRight]:
    """Yield what is missing at the topic of the markers; where there is none, whether this client may make it."""
    admin, read = _admin(connection), f"Read topic {MARKER_TOPIC}"
    grant = f"kafka-acls --add --allow-principal User:NAME --operation Read --topic {MARKER_TOPIC}"
    try:
        allowed = _allowed(admin, MARKER_TOPIC)
        if allowed is not None and READ not in allowed:
            yield MissingRight(right=read, command=grant)
        return
    except KafkaException as error:
        if error.args[0].code() in _REFUSED:
            yield MissingRight(right=f"{read}, or the topic is not there", command=grant)
            return
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise _away(connection, error.args[0].name()) from error
    except TimeoutError as error:
        raise _away(connection, "no answer") from error
    asked = admin.create_topics([NewTopic(MARKER_TOPIC, 1, 1)], validate_only=True, request_timeout=_SECONDS)
    try:
        asked[MARKER_TOPIC].result(_SECONDS)
    except KafkaException as error:
        if error.args[0].code() in (*_REFUSED, KafkaError.POLICY_VIOLATION):
            make = f"kafka-topics --create --topic {MARKER_TOPIC} --partitions 1"
            yield MissingRight(right=f"make topic {MARKER_TOPIC}, which is not there", command=make)
    except TimeoutError as error:
        raise _away(connection, "no answer") from error


def _missing(operation: str, what: str, resource: str) -> MissingRight:
    return MissingRight(
        right=f"{operation} {what}",
        command=f"kafka-acls --add --allow-principal User:NAME --operation {operation} {resource} "
        "--resource-pattern-type prefixed",
    )


def _away(connection: KafkaConnection, why: str) -> TransientError:
    return TransientError(f"Kafka {connection.id}: topic {MARKER_TOPIC} cannot be described ({why})")


def _admin(connection: KafkaConnection) -> AdminClient:
    return AdminClient({**client_properties(connection), "log_level": 0, "socket.timeout.ms": int(_SECONDS * 1000)})


def _allowed(admin: AdminClient, topic: str) -> Collection[AclOperation] | None:
    """Return what the client may do with a topic; None: the brokers have no authorizer.

    Raises:
        KafkaException: it cannot be described.
        TimeoutError: the brokers do not answer.
    """
    asked: Any = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=_SECONDS
    )
    allowed: Collection[AclOperation] | None = asked[topic].result(_SECONDS).authorized_operations
    return allowed
