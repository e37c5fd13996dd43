"""Read and set how far consumer groups are in their topics."""

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from examples.cdc.settings import (
    CONTROL_TOPIC,
    GROUP,
    LAKE_COORDINATOR,
    LAKE_GROUP,
    PARTITIONS,
    TOPIC,
    Systems,
)

ANSWER_SECONDS = 30.0


def quiet_admin(systems: Systems) -> AdminClient:
    """Return a client that does not log what it leaves undone when it is closed."""
    return AdminClient({"bootstrap.servers": systems.bootstrap, "log_level": 3})


def group_is_at_the_end(systems: Systems, group: str = GROUP) -> bool:
    """Return whether a group has committed the end of every partition that holds a record."""
    committed = committed_offsets(systems, group, TOPIC)
    return all(committed.get(partition) == end for partition, end in _ends(quiet_admin(systems)).items() if end)


def committed_offsets(systems: Systems, group: str, topic: str) -> Mapping[int, int]:
    """Return the offsets that a group has committed in a topic; none while its coordinator begins its work."""
    admin = quiet_admin(systems)
    [answer] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    try:
        parts = answer.result(ANSWER_SECONDS).topic_partitions or []
    except KafkaException as error:
        if error.args[0].retriable() or error.args[0].code() == KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            return {}
        raise
    return {at.partition: at.offset for at in parts if at.topic == topic}


def lake_is_noted(systems: Systems) -> bool:
    """Return whether the lake's coordinator has committed an offset behind every event whose files are in the table."""
    lake, noted = systems.lake, committed_offsets(systems, LAKE_COORDINATOR, CONTROL_TOPIC)
    known = lake.control_offsets(LAKE_GROUP)
    return bool(known) and all(noted.get(partition, 0) >= offset for partition, offset in known.items())


def set_group_to_the_end(systems: Systems) -> None:
    """Commit the end of each partition for the group, as `kafka-consumer-groups --reset-offsets --to-latest` does.

    Raises:
        KafkaException: the group has members, or the broker refuses.
    """
    admin = quiet_admin(systems)
    set_offsets(admin, GROUP, [TopicPartition(TOPIC, partition, end) for partition, end in _ends(admin).items()])


def set_offsets(admin: AdminClient, group: str, offsets: list[TopicPartition]) -> None:
    """Commit offsets for a group without members.

    Raises:
        KafkaException: the group has members, or the broker refuses.
    """
    [answer] = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)]).values()
    for at in answer.result(ANSWER_SECONDS).topic_partitions or []:
        if at.error is not None:
            raise RuntimeError(f"the broker refused the offset of partition {at.partition}: {at.error}")


def has_members(admin: AdminClient, group: str) -> bool:
    """Return whether a group has members, be they dead for some seconds."""
    [answer] = admin.describe_consumer_groups([group]).values()
    return bool(answer.result(ANSWER_SECONDS).members)


def forget_group(admin: AdminClient, group: str) -> None:
    """Delete a group without members, as the end of its retention does.

    Raises:
        KafkaException: the group has members, or the broker refuses.
    """
    [answer] = admin.delete_consumer_groups([group]).values()
    answer.result(ANSWER_SECONDS)


def _ends(admin: AdminClient) -> Mapping[int, int]:
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    answers = admin.list_offsets(dict.fromkeys(partitions, latest))
    return {at.partition: answer.result(ANSWER_SECONDS).offset for at, answer in answers.items()}
