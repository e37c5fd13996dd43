"""Make the warehouse in every kind that a store can have."""

from dataclasses import dataclass

from tests.world.windows import ReconciledShop

_COLUMNS = (
    "id text, number bigint, region text, amount numeric(8,2), at timestamptz, due date, is_paid boolean, remark text"
)


@dataclass(frozen=True, kw_only=True)
class StoreKind:
    """A kind of store. `statements` make it, of the columns in `{columns}`; `written` is the table that a loader
    writes to."""

    name: str
    statements: tuple[str, ...]
    written: str = "warehouse"
    is_writable: bool = True

    def make(self, shop: ReconciledShop) -> None:
        """Make the ledger and the warehouse, empty."""
        shop.sql(f"create table outbox ({_COLUMNS})")
        for statement in self.statements:
            shop.sql(statement.format(columns=_COLUMNS))


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
        name="view",
        statements=("create table loaded ({columns})", "create view warehouse as select * from loaded"),
        written="loaded",
        is_writable=False,
    ),
)
