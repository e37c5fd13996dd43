"""Test points that come to the file of a pipeline in operation, and those that come back to it: what is kept of them is
from the newest window that had them."""

from collections.abc import Sequence

import pytest

from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from tests.world.orders import Order, orders
from tests.world.pipeline_file import ledger, store
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

SHELF_HOP = "parcels→shelf"


@pytest.fixture
def parcels(shop: ReconciledShop) -> ReconciledShop:
    """A ledger of parcels and their shelf, whose keys are numbers with a fraction, beside the orders."""
    for table, like in (("parcels", "outbox"), ("shelf", "warehouse")):
        shop.sql(f"create table {table} (like {like} including all)")
        shop.sql(f"alter table {table} alter id type numeric using null, add column code numeric")
    return shop


def numbered(numbers: Sequence[int], day: int) -> list[Order]:
    return [order | {"id": f"{order['number']}.5"} for order in orders(numbers, day)]


def with_parcels(shop: ReconciledShop, *, key: str = "id", name: str = "shelf") -> None:
    """Have the file describe parcels, too."""
    points = {"parcels": ledger("db", "parcels", key=key), name: store("db", "shelf", key=key)}
    hop = {"from": "parcels", "to": name, "compensation": "{missing: report, duplicate: report}"}
    shop.describe(more_points=points, more_hops=[hop])


def day_without_parcels(shop: ReconciledShop, day: int) -> None:
    shop.describe()
    shop.trade(orders(range(10 * day, 10 * day + 4), day))
    assert shop.whole_way(day)[1].state is WindowState.CERTIFIED


def test_points_that_no_window_had_are_read_by_the_types_of_their_columns(parcels: ReconciledShop) -> None:
    day_without_parcels(parcels, 0)
    with_parcels(parcels)
    parcels.write("parcels", numbered(range(4), 1))
    parcels.write("shelf", numbered(range(3), 1))

    context = parcels.judged(1)

    assert context.window.key_layout["shelf"] == context.window.key_layout["parcels"] == ("decimal",)
    assert parcels.found(context, SHELF_HOP) == {"3.5": ("missing", "never_written")}


@pytest.mark.parametrize(
    ("key", "name", "refusal"),
    [
        ("{id: string}", "shelf", r"the windows before compared parcels\.id as decimal, and this one would as string"),
        (
            "code",
            "shelf",
            "the windows before knew parcels by id, shelf by id, and this one would know parcels by code",
        ),
        ("id", "rack", "rack is what the windows before knew as shelf"),
    ],
)
def test_points_that_come_back_are_held_to_the_newest_window_that_had_them(
    parcels: ReconciledShop, key: str, name: str, refusal: str
) -> None:
    with_parcels(parcels)
    parcels.trade(orders(range(4)))
    for table in ("parcels", "shelf"):
        parcels.write(table, numbered(range(4), 0))
    assert parcels.whole_way()[1].state is WindowState.CERTIFIED
    day_without_parcels(parcels, 1)

    with_parcels(parcels, key=key, name=name)
    with pytest.raises(RefusedError, match=refusal):
        parcels.ask(2)

    with_parcels(parcels)
    assert parcels.ask(2).window.number == 3
