"""Hold what a window found, and what a repair left, to what is right of a changed day."""

from collections.abc import Iterable

from makewhole.window.context import WindowContext
from tests.histories.shapes.stores import StoreKind
from tests.world.orders import Order
from tests.world.sql import insert_rows
from tests.world.windows import ReconciledShop

REPAIRS = {"missing": "upsert", "duplicate": "quarantine", "mismatched": "upsert", "unexpected": "quarantine"}
REPORTS = dict.fromkeys(REPAIRS, "report")


def found_verdicts(shop: ReconciledShop, context: WindowContext, hop: str) -> dict[str, str]:
    """Return the verdicts of a hop by key, but for matched ones."""
    return {key: verdict for key, (verdict, _) in shop.found(context, hop).items()}


def differing_rows(shop: ReconciledShop, kind: StoreKind, expected: list[Order]) -> list[object]:
    """Return the rows that the store has too many or too few, column by column."""
    return differing_from(shop, kind.written, map(kind.row, expected))


def differing_from(shop: ReconciledShop, table: str, expected: Iterable[Order]) -> list[object]:
    """Return the rows that a table has too many or too few, column by column."""
    shop.sql(f"create table expected (like {table})")
    insert_rows(shop.dsn, "expected", expected)
    either = "select * from {0} except all select * from {1}"
    return [row for names in ((table, "expected"), ("expected", table)) for row in shop.sql(either.format(*names))]
