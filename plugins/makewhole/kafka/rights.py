"""Ask the brokers what this client may do with a topic."""

from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from makewhole.kafka.replay import client_properties
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import PermanentError, TransientError

_SECONDS = 15.0
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,
)
READ, WRITE = AclOperation.READ, AclOperation.WRITE


def missing_rights(connection: KafkaConnection, topic: str, needed: Collection[AclOperation]) -> tuple[str, ...]:
    """Return the names of those operations that this client may not do with a topic, in capitals as Kafka's ACLs have
    them. Brokers without an authorizer allow all.

    Raises:
        PermanentError: the brokers refuse to describe the topic, or there is none.
        TransientError: they do not answer.
    """
    admin = AdminClient({**client_properties(connection), "log_level": 0, "socket.timeout.ms": int(_SECONDS * 1000)})
    try:
        asked: Any = admin.describe_topics(
            TopicCollection([topic]), include_authorized_operations=True, request_timeout=_SECONDS
        )
        described = asked[topic].result(_SECONDS)
    except KafkaException as error:
        code = error.args[0].code()
        message = f"Kafka {connection.id}: topic {topic} cannot be described ({error.args[0].name()})"
        if code in _REFUSED or code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise PermanentError(message) from error
        raise TransientError(message) from error
    except TimeoutError as error:
        raise TransientError(f"Kafka {connection.id}: no answer about topic {topic} in {_SECONDS:.0f} s") from error
    allowed = described.authorized_operations
    if allowed is None:
        return ()
    return tuple(operation.name for operation in needed if operation not in allowed)
