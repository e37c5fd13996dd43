"""Make the warehouse in every kind that a store can have."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.world.orders import Order
from tests.world.pipeline_file import Settings
from tests.world.windows import ReconciledShop

_TYPES = {
    "id": "text",
    "number": "bigint",
    "region": "text",
    "amount": "numeric(8,2)",
    "at": "timestamptz",
    "due": "date",
    "is_paid": "boolean",
    "remark": "text",
}
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())
"""The columns of a table of orders."""


@dataclass(frozen=True, kw_only=True)
class StoreKind:
    """A kind of store. `statements` make it, of the columns in `{columns}`; `written` is the table that a loader
    writes to. `names` are those of columns that have other ones in the table, and `settings` those of its point."""

    name: str
    statements: tuple[str, ...]
    written: str = "warehouse"
    is_writable: bool = True
    names: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)

    def make(self, shop: ReconciledShop) -> None:
        """Make the ledger and the warehouse, empty."""
        shop.sql(f"create table outbox ({_columns({})})")
        for statement in self.statements:
            shop.sql(statement.format(columns=_columns(self.names)))

    def row(self, order: Order) -> Order:
        """Return the row of an order by the columns of the table."""
        return {self.names.get(name, name): value for name, value in order.items()}


def _columns(names: Mapping[str, str]) -> str:
    quoted = {name: names.get(name, name).replace('"', '""') for name in _TYPES}
    return ", ".join(f'"{quoted[name]}" {kind}' for name, kind in _TYPES.items())


_OTHER_NAMES = {"id": "Order Id", "amount": "Total, in EUR", "at": 'at "UTC"', "remark": "select"}

STORES = (
    StoreKind(name="table", statements=("create table warehouse ({columns})",)),
    StoreKind(
        name="table with indexes",
        statements=(
            "create table warehouse ({columns})",
            "create index on warehouse (id)",
            "create index on warehouse (at)",
        ),
    ),
    StoreKind(
        name="partitioned table",
        statements=(
            "create table warehouse ({columns}) partition by hash (id)",
            "create table warehouse_0 partition of warehouse for values with (modulus 2, remainder 0)",
            "create table warehouse_1 partition of warehouse for values with (modulus 2, remainder 1)",
        ),
    ),
    StoreKind(
        name="table of other names",
        statements=('create schema "D.W"', 'create table "D.W"."Ware House" ({columns})'),
        written='"D.W"."Ware House"',
        names=_OTHER_NAMES,
        settings={
            "table": """'"D.W"."Ware House"'""",
            "key": "Order Id",
            "time": """'at "UTC"'""",
            "columns": """{amount: "Total, in EUR", at: 'at "UTC"', remark: select}""",
        },
    ),
    StoreKind(
        name="view",
        statements=("create table loaded ({columns})", "create view warehouse as select * from loaded"),
        written="loaded",
        is_writable=False,
    ),
)
