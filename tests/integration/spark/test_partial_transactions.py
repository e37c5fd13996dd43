"""Judge transactions over two topics that brought a key to one of them alone, by the archives of both."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from tests.world.java_clients import JavaClients, JavaProducer
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import ledger, pipeline_file, topic
from tests.world.topics import left_open, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LEFT, RIGHT = "outbox→orders", "outbox→parcels"
Send = Callable[[str, Order], object]


class _TwoTopics:
    """A shop whose orders go into two topics."""

    def __init__(self, shop: ReconciledShop) -> None:
        self.shop, self.other, self.made = shop, shop.add_topic(), orders(range(10))
        text = pipeline_file(
            "shop",
            points={
                "outbox": ledger("db", "outbox"),
                "orders": topic("log", shop.topic),
                "parcels": topic("log", self.other),
            },
            hops=[{"from": "outbox", "to": "orders"}, {"from": "outbox", "to": "parcels"}],
            settings={
                "start": "earliest",
                "settle": "0s",
                "compare": '{amount: "decimal(8,2)"}',
                "compensation": "{limits: {share: 1.0}}",
            },
            columns={},
        )
        shop.file.write_text(text)
        shop.write("outbox", self.made)

    def all_but(self, *numbers: int) -> list[Order]:
        return [order for order in self.made if order["number"] not in numbers]

    def send(
        self, client: JavaProducer, left: Iterable[Order], right: Iterable[Order], *, commits: bool = True
    ) -> None:
        """One transaction of a Java producer."""
        with client.transaction(is_committed=commits):
            for name, some in ((self.shop.topic, left), (self.other, right)):
                for order in some:
                    client.send(
                        name,
                        json.dumps(order).encode(),
                        key=order["id"].encode(),
                        timestamp_ms=milliseconds(order["at"]),
                    )
        for name in (self.shop.topic, self.other):
            left_open(self.shop.bootstrap, name)


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClients]:
    with JavaClients() as clients:
        yield clients


@pytest.fixture
def two(shop: ReconciledShop) -> _TwoTopics:
    return _TwoTopics(shop)


@pytest.fixture
def client(two: _TwoTopics, java: JavaClients) -> Iterator[JavaProducer]:
    with java.producer(two.shop.bootstrap, transactional_id=f"tx-{two.other}", retry_backoff_ms=5) as made:
        made.init_transactions()
        yield made


def test_a_key_that_one_topic_of_a_committed_transaction_lacks_is_named_and_repaired(
    two: _TwoTopics, client: JavaProducer
) -> None:
    two.send(client, two.made[:2], two.made[:2])
    two.send(client, two.made[2:], [order for order in two.made[2:] if order["id"] != "O3"])

    context = two.shop.judge_and_ask_the_gate()

    assert two.shop.found(context, LEFT) == {}
    assert two.shop.found(context, RIGHT) == {"O3": ("missing", "partial_transaction")}
    shown = two.shop.evidence(context, RIGHT, "O3")["partial_transaction"]
    # Of each partition: 2 records and a marker; then 8, or 7, and a marker.
    assert (shown["topic"], shown["copy"], shown["marker"]) == ("orders", "0:4", "0:11")
    assert (shown["target_record"], shown["target_marker"]) == ("0:3", "0:10")
    assert shown["is_committed_in_target"] is True
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    assert two.shop.outcome_of(context, RIGHT, "O3") == ("repaired", None)
    assert two.shop.certify(context).state is WindowState.CERTIFIED


def test_a_transaction_that_wrote_to_one_topic_alone_was_not_partial(two: _TwoTopics, client: JavaProducer) -> None:
    two.send(client, two.all_but(3), two.all_but(3))
    two.send(client, [two.made[3]], [])

    assert two.shop.found(two.shop.judged(), RIGHT) == {"O3": ("missing", "never_produced")}


def test_records_of_an_aborted_transaction_show_nothing(two: _TwoTopics, client: JavaProducer) -> None:
    two.send(client, two.made, two.all_but(3), commits=False)
    two.send(client, two.all_but(3), two.all_but(3))

    context = two.shop.judged()

    assert two.shop.found(context, LEFT) == {"O3": ("missing", "aborted_transaction")}
    assert two.shop.found(context, RIGHT) == {"O3": ("missing", "never_produced")}


def test_a_producer_that_keeps_its_epoch_does_not_show_its_transactions(two: _TwoTopics) -> None:
    client = producer(two.shop.bootstrap, transactional_id=f"tx-{two.other}", log_level=0)
    client.init_transactions(30)

    def transaction(left: Sequence[Order], right: Sequence[Order]) -> None:
        client.begin_transaction()
        for name, some in ((two.shop.topic, left), (two.other, right)):
            for order in some:
                client.produce(name, json.dumps(order), key=order["id"], timestamp=milliseconds(order["at"]))
        client.commit_transaction(30)

    transaction(two.all_but(3), two.all_but(3))
    transaction([two.made[3]], [])
    left_open(two.shop.bootstrap, two.shop.topic)

    assert two.shop.found(two.shop.judged(), RIGHT) == {"O3": ("missing", "never_produced")}
