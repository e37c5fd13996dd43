"""Run a shop whose warehouse is an Iceberg table: its orders go from a topic into it, and no ledger is before them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.world.iceberg_lake import Lake, row_of
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, dataset
from tests.world.windows import ReconciledShop

TABLE = "dw.warehouse"


@dataclass(kw_only=True)
class IcebergShop(ReconciledShop):
    """A shop whose warehouse is a table of a catalogue on a folder."""

    lake: Lake

    def describe_lake(self, *, compensation: Settings | None = None, table: str = TABLE, **settings: Any) -> None:
        """Write the pipeline's file; its warehouse is a table of the lake."""
        warehouse = settings.pop("warehouse", None) or dataset("lake", table)
        self.describe(
            has_ledger=False,
            compensation=compensation or {},
            is_observing=compensation is None,
            more_points={"warehouse": warehouse},
            **settings,
        )

    def load(self, orders: Iterable[Order]) -> None:
        """Append rows in one file, as a loader does."""
        self.lake.append(TABLE, [row_of(order) for order in orders])
