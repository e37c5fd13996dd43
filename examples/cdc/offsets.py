"""Read and set how far the sink's consumer group is in the topic."""

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from examples.cdc.settings import GROUP, PARTITIONS, TOPIC, Systems

ANSWER_SECONDS = 30.0


def quiet_admin(systems: Systems) -> AdminClient:
    """Return a client that does not log what it leaves undone when it is closed."""
    return AdminClient({"bootstrap.servers": systems.bootstrap, "log_level": 3})


def group_is_at_the_end(systems: Systems) -> bool:
    """Return whether the group has committed the end of every partition that holds a record."""
    admin = quiet_admin(systems)
    [answer] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]).values()
    committed = {at.partition: at.offset for at in answer.result(ANSWER_SECONDS).topic_partitions or []}
    return all(committed.get(partition) == end for partition, end in _ends(admin).items() if end)


def set_group_to_the_end(systems: Systems) -> None:
    """Commit the end of each partition for the group, as `kafka-consumer-groups --reset-offsets --to-latest` does.

    Raises:
        KafkaException: the group has members, or the broker refuses.
    """
    admin = quiet_admin(systems)
    offsets = [TopicPartition(TOPIC, partition, end) for partition, end in _ends(admin).items()]
    [answer] = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, offsets)]).values()
    for at in answer.result(ANSWER_SECONDS).topic_partitions or []:
        if at.error is not None:
            raise RuntimeError(f"the broker refused the offset of partition {at.partition}: {at.error}")


def _ends(admin: AdminClient) -> Mapping[int, int]:
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    answers = admin.list_offsets(dict.fromkeys(partitions, latest))
    return {at.partition: answer.result(ANSWER_SECONDS).offset for at, answer in answers.items()}
