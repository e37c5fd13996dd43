"""Test a column that is read from another place than in the windows before: what these read is no value of now."""

import json
from collections.abc import Iterable

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_purged_ledgers import HOP
from tests.world.orders import COLUMNS, Order, milliseconds, orders
from tests.world.pipeline_file import Settings, fed_by_ledgers, pipeline_file, store, topic
from tests.world.shop import STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

MISMATCHED = ("mismatched", "value_differs")


def send(shop: ReconciledShop, made: Iterable[Order], topic: str | None = None) -> None:
    """Send records with a gross amount, and a net one that is 1 less."""
    client = producer(shop.bootstrap)
    for order in made:
        prices = {"gross": order["amount"], "net": f"{float(order['amount']) - 1:.2f}"}
        value = json.dumps({"id": order["id"], "price": prices, "number": order["number"]})
        client.produce(topic or shop.topic, key=order["id"], value=value, timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0


def describe(shop: ReconciledShop, place: str, column: str = "amount") -> None:
    """Read the amount of a record at a place, and that of a row in a column."""
    points = {
        "orders": topic("log", shop.topic, columns=f'{{amount: "{place}"}}'),
        "warehouse": store("db", "warehouse", columns=f"{{amount: {column}}}"),
    }
    shop.describe(has_ledger=False, more_points=points, late="3d")


@pytest.mark.parametrize("is_read_otherwise", [False, True])
def test_a_record_of_before_is_no_value_of_another_place(shop: ReconciledShop, is_read_otherwise: bool) -> None:
    """Rows of the day before are written again, some with the amount that is compared now: the window of their records
    says nothing of it."""
    describe(shop, "$.price.gross")
    made = orders(range(6))
    send(shop, made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    if is_read_otherwise:
        describe(shop, "$.price.net")
    shop.sql("update warehouse set amount = amount - 1, at = at + interval '1 day' where id in ('O1', 'O2')")
    shop.sql("update warehouse set at = at + interval '1 day' where id in ('O3', 'O4')")
    later = orders(range(100, 104), 1)
    send(shop, later)
    shop.write(
        "warehouse", [order | {"amount": f"{float(order['amount']) - is_read_otherwise:.2f}"} for order in later]
    )

    context = shop.judge_and_ask_the_gate(1)

    expected = {} if is_read_otherwise else dict.fromkeys(["O1", "O2"], MISMATCHED)
    assert shop.found(context, STORE_HOP) == expected


@pytest.mark.parametrize("is_read_otherwise", [False, True])
def test_a_filter_whose_column_stands_elsewhere_is_another_filter(
    shop: ReconciledShop, is_read_otherwise: bool
) -> None:
    """Rows of the day before are written again, whose records passed what the filter was then."""

    def described(place: str) -> None:
        points = {"orders": topic("log", shop.topic, columns=f'{{low: "{place}"}}')}
        shop.describe(has_ledger=False, more_points=points, hop={"where": "low = 1.5"}, late="3d", compare="{}")

    described("$.price.gross")
    made = [order | {"amount": "1.5" if order["number"] % 2 else "2.5"} for order in orders(range(6))]
    send(shop, made)
    passing = [order for order in made if order["amount"] == "1.5"]
    shop.write("warehouse", passing)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    if is_read_otherwise:
        described("$.price.net")
    shop.sql("update warehouse set at = at + interval '1 day' where id = 'O1'")
    later = orders(range(100, 104), 1)
    send(shop, later)
    shop.write("warehouse", [order for order in later if float(order["amount"]) == 1.5 + is_read_otherwise])

    context = shop.judge_and_ask_the_gate(1)

    expected = {"O1": ("undecidable", "filter_changed")} if is_read_otherwise else {}
    assert shop.found(context, STORE_HOP) == expected


def test_a_column_of_a_store_that_changed_is_read_again(shop: ReconciledShop) -> None:
    describe(shop, "$.price.gross")
    shop.sql("alter table warehouse add total numeric(8,2)")
    made = orders(range(4))
    send(shop, made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, "$.price.gross", "total")
    again = shop.judge_and_ask_the_gate()

    assert shop.found(again, STORE_HOP) == dict.fromkeys(["O0", "O1", "O2", "O3"], MISMATCHED)


def test_what_a_removed_source_brought_is_known_by_the_places_that_it_had(shop: ReconciledShop) -> None:
    """A row has the version of a source that the file names no more, and the source that is left has an older one."""
    second = shop.add_topic()

    def described(*names: str) -> None:
        sources: dict[str, Settings] = {
            "first": topic("log", shop.topic, version='"$.number"', columns='{amount: "$.price.gross"}'),
            "second": topic("log", second, version='"$.number"', columns='{amount: "$.price.net"}'),
        }
        text = pipeline_file(
            "shop",
            points={name: sources[name] for name in names} | {"warehouse": store("db", "warehouse", version="number")},
            hops=[{"from": name, "to": "warehouse", "semantics": "upsert"} for name in names],
            settings={"start": "earliest", "settle": "0s", "late": "3d", "compare": '{amount: "decimal(8,2)"}'},
            columns=COLUMNS,
            is_observing=True,
        )
        shop.file.write_text(text)

    described("first", "second")
    made = orders(range(3))
    send(shop, made)
    send(shop, orders([50]), second)
    shop.write("warehouse", [*made, orders([50])[0] | {"amount": "49.50"}])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    send(shop, [order | {"amount": "9.00", "number": 1000} for order in orders(range(1), 1)], second)
    shop.sql("update warehouse set amount = 8, number = 1000, at = at + interval '1 day' where id = 'O0'")
    send(shop, orders(range(10, 13), 1))
    shop.write("warehouse", orders(range(10, 13), 1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    described("first")
    send(shop, orders(range(20, 23), 2))
    shop.write("warehouse", orders(range(20, 23), 2))
    shop.sql("update warehouse set at = at + interval '1 day' where id in ('O0', 'O1')")
    shop.sql("update warehouse set amount = 7 where id = 'O1'")
    context = shop.judge_and_ask_the_gate(2)

    changed = ("undecidable", "hops_changed")
    assert shop.found(context, "first→warehouse") == {"O0": changed, "O1": MISMATCHED}


def test_rows_of_a_ledger_of_before_are_no_values_of_another_column(shop: ReconciledShop) -> None:
    def described(column: str) -> None:
        text = fed_by_ledgers(
            ["outbox"],
            hop={},
            columns=COLUMNS,
            late="3d",
            compensation="{limits: {share: 1.0}, missing: upsert, mismatched: upsert}",
        )
        assert "table: outbox," in text
        shop.file.write_text(text.replace("table: outbox,", f"table: outbox, columns: {{amount: {column}}},"))

    shop.sql("alter table outbox add net numeric(8,2)")
    described("amount")
    first = orders(range(6))
    shop.write("outbox", [order | {"net": "0.50"} for order in first])
    shop.write("warehouse", first)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    described("net")
    shop.sql("update warehouse set at = at + interval '1 day'")
    later = orders(range(100, 106), 1)
    shop.write("outbox", [order | {"net": "0.50"} for order in later])
    shop.write("warehouse", [order | {"amount": "0.50"} for order in later])
    context = shop.judge_and_ask_the_gate(1)

    changed = ("undecidable", "compare_changed")
    assert shop.found(context, HOP) == dict.fromkeys(["O1", "O2", "O3", "O4", "O5"], changed)
