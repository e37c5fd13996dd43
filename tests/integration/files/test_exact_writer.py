"""Test that the example's writer of files writes each record once, wherever it is killed, and however many run."""

import threading
from collections.abc import Sequence
from random import Random

import pytest
from confluent_kafka import KafkaException, Message, TopicPartition

from examples.files.writer import CLAIMED, DONE, PUBLISHED, READ
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.lab.processes.file_writer import OrdersWriter
from tests.world.consumer import committed, consumer
from tests.world.files_lake import ORDERS
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


class DiedError(Exception):
    """The writer dies."""


def write(shop: FilesShop, *, dies_at: tuple[int, str] | None = None, most: int = 4, group: str = "files") -> bool:
    """Write to the end, or die at a step of a file; return whether it came to the end."""
    files = iter(range(10_000))
    file = 0

    def at(step: str, _: Sequence[Message]) -> None:
        nonlocal file
        file = next(files) if step == READ else file
        if (file, step) == dies_at:
            raise DiedError

    with consumer(shop.bootstrap, f"{group}-{shop.topic}", reset="error") as client:
        writer = OrdersWriter(client=client, store=shop.place.store, topic=shop.topic, schema=ORDERS, most=most, at=at)
        try:
            writer.write_to_end()
        except DiedError:
            return False
    return True


def positions(shop: FilesShop) -> list[tuple[int, int]]:
    """Return the positions of all rows, in order."""
    return sorted((row["p"], row["o"]) for row in shop.place.rows())


@pytest.mark.parametrize("place", ["folder", "hdfs", "s3"], indirect=True)
def test_each_record_is_written_once_wherever_the_writer_dies(shop: FilesShop) -> None:
    made, random = orders(range(30)), Random(1)
    shop.send(made)
    for step in (READ, CLAIMED, PUBLISHED, DONE):
        for file in (0, 1):
            write(shop, dies_at=(file, step), most=random.randint(2, 5))
    assert write(shop)
    assert positions(shop) == [(0, offset) for offset in range(30)]
    assert write(shop)
    assert len(shop.place.rows()) == 30

    shop.describe_files(has_key=False, topic_key="position", more={"position": "{partition: p, offset: o}"})
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_two_writers_that_cut_otherwise_write_each_record_once(shop: FilesShop) -> None:
    """One has read four records and stands still; another one writes on, seven at a time; then the first goes on."""
    shop.send(orders(range(40)))
    stands, goes_on = threading.Event(), threading.Event()

    def wait(step: str, _: Sequence[Message]) -> None:
        if step == READ:
            stands.set()
            assert goes_on.wait(60)

    def slow() -> None:
        with consumer(shop.bootstrap, f"slow-{shop.topic}") as client:
            OrdersWriter(
                client=client, store=shop.place.store, topic=shop.topic, schema=ORDERS, most=4, at=wait
            ).write_to_end()

    thread = threading.Thread(target=slow)
    thread.start()
    assert stands.wait(60)
    assert write(shop, most=7)
    goes_on.set()
    thread.join(60)
    assert not thread.is_alive()
    assert positions(shop) == [(0, offset) for offset in range(40)]


def test_a_claim_without_a_file_is_written_as_it_was_claimed(shop: FilesShop) -> None:
    shop.send(orders(range(10)))
    assert not write(shop, dies_at=(0, CLAIMED), most=6)
    assert [name for name in shop.place.names() if name.endswith(".parquet")] == []
    assert write(shop, most=3)
    names = [name for name in shop.place.names() if name.endswith(".parquet")]
    assert names[0] == f"{shop.topic}+0+0000000000+0000000005.parquet"
    assert positions(shop) == [(0, offset) for offset in range(10)]


def test_the_group_follows_a_file_behind_which_its_writer_died(shop: FilesShop) -> None:
    """No record is left to write, and the lag must be none."""
    shop.send(orders(range(10)))
    assert not write(shop, dies_at=(0, PUBLISHED), most=10)
    assert reached(shop) < 0

    assert write(shop)

    assert reached(shop) == 10


def test_records_that_are_deleted_before_they_are_written_are_not_skipped(shop: FilesShop) -> None:
    shop.send(orders(range(10)))
    assert not write(shop, dies_at=(0, DONE), most=4)
    shop.delete_records({0: 7})

    with pytest.raises(KafkaException, match="_AUTO_OFFSET_RESET"):
        write(shop)

    assert positions(shop) == [(0, offset) for offset in range(4)]


def reached(shop: FilesShop) -> int:
    """Return the offset that the group committed; below 0: none."""
    with consumer(shop.bootstrap, f"files-{shop.topic}") as client:
        [at] = committed(client, [TopicPartition(shop.topic, 0)])
    return int(at.offset)
