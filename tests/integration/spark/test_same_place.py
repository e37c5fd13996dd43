"""Test places that a pipeline knows under several names: a place is what it is, whatever a point is called."""

import pytest

from makewhole.model.errors import ConfigurationError, RefusedError
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


PARTITIONS = """
drop table warehouse;
create table warehouse (id text, number int, region text, amount numeric(8,2), at timestamptz)
    partition by list (region);
create table shelf partition of warehouse for values in ('EU');
create table rest partition of warehouse for values in ('US');
"""
SHARED = (
    "have rows in common \\(one is a partition, a child or a view of the other\\), and other sources fill them: rows "
    "that one source brings would be unexpected at the other point"
)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(PARTITIONS, id="partition"),
        pytest.param("create table shelf () inherits (warehouse)", id="child"),
        pytest.param("create view shelf as select * from warehouse where region = 'EU'", id="view"),
        pytest.param("create view wide as table warehouse; create view shelf as table wide", id="view_of_a_view"),
        pytest.param("create view shelf as select distinct on (id) * from warehouse order by id, at", id="latest_rows"),
    ],
)
def test_two_points_that_share_rows_and_not_their_sources_are_refused(shop: ReconciledShop, made: str) -> None:
    shop.sql(made)
    with_two_points_on_one_table(shop, "shelf")
    with pytest.raises(ConfigurationError, match=f"shelf \\(point shelf\\) {SHARED}"):
        shop.ask()


@pytest.mark.parametrize(
    ("made", "table", "key"),
    [
        pytest.param(PARTITIONS, "rest", "id", id="another_partition"),
        pytest.param("create table shelf (like warehouse)", "shelf", "id", id="another_table"),
        pytest.param(
            "create view summed as select number % 4 as rest, sum(amount) as amount, max(at) as at from warehouse "
            "group by rest",
            "summed",
            "rest",
            id="made_of_many_rows",
        ),
    ],
)
def test_points_whose_rows_are_not_the_same_are_places_of_their_own(
    shop: ReconciledShop, made: str, table: str, key: str
) -> None:
    shop.sql(made)
    others = shop.add_topic()
    points = {"others": topic("log", others, key=f'"$.{key}"'), "shelf": store("db", table, key=key)}
    if table == "rest":
        points["warehouse"] = store("db", "shelf")
    shop.describe(more_points=points, more_hops=[{"from": "others", "to": "shelf"}], is_observing=True)
    assert shop.ask().is_new


def test_a_table_and_its_view_that_one_topic_fills_are_both_judged(shop: ReconciledShop) -> None:
    shop.sql("create view shelf as table warehouse")
    shop.describe(
        more_points={"shelf": store("db", "shelf")}, more_hops=[{"from": "orders", "to": "shelf"}], is_observing=True
    )
    shop.trade(orders(range(6)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_a_ledger_that_is_a_view_of_the_store_behind_it_is_refused(shop: ReconciledShop) -> None:
    shop.sql("drop table outbox; create view outbox as table warehouse")
    with pytest.raises(
        ConfigurationError, match="hops lead from one to the other, which would be compared with itself"
    ):
        shop.ask()


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
