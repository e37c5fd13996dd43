"""A small pipeline of each test's own on real servers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.world.databases import Databases
from tests.world.environment import enter, service_environment
from tests.world.kept_sessions import kept_sessions
from tests.world.orders import Order, orders
from tests.world.topics import delete_topics, make_topic
from tests.world.windows import ReconciledShop

NewShop = Callable[[], ReconciledShop]


@pytest.fixture
def new_shop(
    carrier: Carrier,
    kafka: KafkaServer,
    databases: Databases,
    journal_template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[NewShop]:
    """Make a shop with empty tables and an empty topic, the environment is that of the newest; the pipeline is
    described with its defaults."""
    made: list[ReconciledShop] = []

    def make() -> ReconciledShop:
        dsn = stack.enter_context(databases.of_a_test("test"))
        journal = stack.enter_context(databases.of_a_test("journal", template=journal_template))
        folder = tmp_path / str(len(made)) if made else tmp_path
        folder.mkdir(exist_ok=True)
        shop = ReconciledShop(carrier=carrier, bootstrap=kafka.bootstrap, dsn=dsn, journal=journal, folder=folder)
        made.append(shop)
        enter(monkeypatch, service_environment(shop, folder))
        shop.describe()
        shop.make_tables()
        make_topic(shop.admin, shop.topic)
        return shop

    with ExitStack() as stack:
        stack.enter_context(kept_sessions())
        yield make
        for shop in made:
            delete_topics(shop.admin, [shop.topic, *shop.more_topics])


@pytest.fixture
def shop(new_shop: NewShop) -> ReconciledShop:
    """A shop of the test's own."""
    return new_shop()


@pytest.fixture
def days(shop: ReconciledShop) -> list[list[Order]]:
    """Send the records of three days; the rows of all but the first of each day are in the store."""
    shop.describe(has_ledger=False)
    made = [orders(range(day * 100, day * 100 + 5), day) for day in range(3)]
    for of_day in made:
        shop.send(of_day)
        shop.write("warehouse", of_day[1:])
    shop.write("warehouse", made[0][:1])
    return made
