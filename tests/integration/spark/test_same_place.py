"""Test places that a pipeline knows under several names: a place is what it is, whatever a point is called."""

import pytest

from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_postgres
from tests.integration.spark.test_survivors import outcomes, repair, send
from tests.world.environment import set_connection
from tests.world.orders import orders
from tests.world.pipeline_file import Settings, store, topic
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

OTHER_HOP = "others→shelf"
QUARANTINE: Settings = {"limits": "{share: 1.0}", "unexpected": "quarantine"}


def with_two_points_on_one_table(
    shop: ReconciledShop, table: str = "warehouse", connection: str = "db", **more: str
) -> str:
    """Describe two topics that fill one table through two points; return the second topic."""
    others = shop.add_topic()
    shop.describe(
        more_points={"others": topic("log", others), "shelf": store(connection, table, **more)},
        more_hops=[{"from": "others", "to": "shelf"}],
        compensation=QUARANTINE,
    )
    return others


@pytest.mark.parametrize(
    ("table", "connection"), [("warehouse", "db"), ("public.warehouse", "db"), ("warehouse", "same_db")]
)
def test_rows_of_one_source_are_not_unexpected_at_another_point_of_the_same_table(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, table: str, connection: str
) -> None:
    set_connection(monkeypatch, "same_db", connection_postgres(shop.dsn))
    others = with_two_points_on_one_table(shop, table, connection)
    made, more = orders(range(6)), orders(range(10, 16))
    shop.trade(made)
    send(shop, others, more)
    shop.write("warehouse", [*more, orders([77])[0]])

    context = shop.judge_and_ask_the_gate()
    unexpected = {"O77": ("unexpected", "not_in_source")}
    assert (shop.found(context, STORE_HOP), shop.found(context, OTHER_HOP)) == (unexpected, unexpected)
    closed = repair(shop, context)

    kept = {row[0] for row in shop.sql("select id from warehouse")}
    assert kept == {order["id"] for order in (*made, *more)}
    assert outcomes(shop, context)[STORE_HOP, "O77"] == ("unexpected", "repaired", None)
    assert closed.state is WindowState.CERTIFIED, closed.reason


def test_two_points_of_one_table_with_other_keys_are_refused(shop: ReconciledShop) -> None:
    with_two_points_on_one_table(shop, key="number")
    with pytest.raises(RefusedError, match="warehouse and shelf are one place, and are known by other keys"):
        shop.open()


def test_a_table_that_moves_to_another_schema_is_the_same_place(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    shop.trade(orders(range(6)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    shop.sql("create schema dw; alter table warehouse set schema dw")
    moved = shop.file.read_text().replace("table: warehouse", "table: dw.warehouse")
    shop.file.write_text(moved.replace("  warehouse:", "  shelf:").replace("to: warehouse", "to: shelf"))
    with pytest.raises(RefusedError, match="shelf is what the windows before knew as warehouse"):
        shop.open(1)
    shop.file.write_text(moved)
    shop.open(1)


def test_a_renamed_point_is_refused_by_its_former_name(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False, hop={"where": "\"region = 'EU'\""}, compensation=QUARANTINE)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", [order for order in made if order["region"] == "EU"])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    text = shop.file.read_text()
    shop.file.write_text(text.replace("orders:", "sales:").replace("from: orders", "from: sales"))
    shop.sql("update warehouse set at = at + interval '1 day'")
    with pytest.raises(RefusedError) as refused:
        shop.open(1)
    assert str(refused.value) == (
        "shop: sales is what the windows before knew as orders, and what is kept from them (the key index, keys handed "
        "over, findings) is under that name: nothing of it would be found. Call the point orders again; to give it "
        "another name, give the pipeline another name, too: it begins a history of its own, from `start:` on"
    )
