"""Test windows over the table of Iceberg's Kafka Connect sink, which is killed between its group and its table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.cli.documents import window_document
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.context import WindowContext
from makewhole.window.readers.sink_text import SINK, sink_sentences
from makewhole_spark.carrier import Carrier
from tests.integration.datasets.iceberg_shop import IcebergShop
from tests.world.environment import enter, service_environment, set_connection
from tests.world.iceberg_lake import Lake
from tests.world.iceberg_sink import IcebergSink
from tests.world.kept_sessions import kept_sessions
from tests.world.orders import orders
from tests.world.pipeline_file import dataset
from tests.world.shop import STORE_HOP
from tests.world.topics import delete_topics, make_topic

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]


@pytest.fixture
def shop(
    lake: Lake, carrier: Carrier, kafka: KafkaServer, journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IcebergShop]:
    """A shop with an empty topic, which is not described yet."""
    shop = IcebergShop(carrier=carrier, bootstrap=kafka.bootstrap, dsn="", journal=journal, folder=tmp_path, lake=lake)
    enter(monkeypatch, service_environment(shop, tmp_path))
    make_topic(shop.admin, shop.topic)
    with kept_sessions():
        yield shop
    delete_topics(shop.admin, [shop.topic, *shop.more_topics])


@pytest.fixture
def sink(shop: IcebergShop, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IcebergSink]:
    """The sink that loads the shop's warehouse; it runs."""
    made = IcebergSink(bootstrap=shop.bootstrap, dsn=database, folder=tmp_path, topic=shop.topic)
    set_connection(monkeypatch, "lake", made.described)
    made.prepare()
    names = made.names
    shop.describe_lake(
        warehouse=dataset("lake", made.lake.table, position="_kafka_metadata"),
        hop={"consumer_group": names.group, "control_topic": names.control_topic},
    )
    made.worker.start()
    yield made
    made.worker.process.stop()


def sentences(shop: IcebergShop, context: WindowContext) -> list[str]:
    """Return what is said of the sink of a window, without the names that differ from run to run."""
    with connect(shop.journal) as journal:
        [hop] = window_document(journal, context.window)["hops"]
    said = sink_sentences(hop["to"], hop[SINK])
    return [text.replace(hop[SINK]["group"], "GROUP").replace(hop[SINK]["control_topic"], "CONTROL") for text in said]


def test_records_that_the_group_is_past_and_the_table_lacks_are_in_flight_until_they_are_lost(
    shop: IcebergShop, sink: IcebergSink
) -> None:
    """Takes long: Connect is started twice."""
    first, second = orders(range(60)), orders(range(100, 130))
    shop.send(first)
    sink.wait_for_all()
    with sink.killed_before_its_commit():
        shop.send(second)

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {order["id"]: ("pending", "not_yet_consumed") for order in second}
    assert (shop.counts(context, STORE_HOP).matched, shop.counts(context, STORE_HOP).pending) == (60, 30)
    assert sentences(shop, context) == [
        "group `GROUP` stands at 0: 90, and its table warehouse at 0: 60",
        "30 records in 1 file that the sink wrote are not in warehouse yet: its coordinator commits them when it runs",
    ]

    sink.forget_coordinator()
    again = shop.judge_and_ask_the_gate()
    lost = {order["id"]: ("missing", "committed_before_written") for order in second}
    assert shop.found(again, STORE_HOP) == lost
    [_, passed] = sentences(shop, again)
    assert passed.startswith(
        "30 records in 1 file that the sink wrote are not in warehouse and never will be, for group `GROUP-coord` is "
        "gone, and its coordinator begins at the end of CONTROL: file:"
    )


def test_records_that_the_group_is_past_are_certified_when_the_sink_has_run_again(
    shop: IcebergShop, sink: IcebergSink
) -> None:
    """Takes long: Connect is started twice."""
    shop.send(orders(range(60)))
    sink.wait_for_all()
    with sink.killed_before_its_commit():
        shop.send(orders(range(100, 130)))
    sink.worker.start()
    sink.wait_for_all()

    context, closed = shop.whole_way()
    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED
    assert sentences(shop, context) == ["group `GROUP` and its table warehouse stand at 0: 90"]
