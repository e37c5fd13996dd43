"""Run a shop whose warehouse is a dataset of Parquet files: its orders go from a topic into it, without a ledger."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.world.files_lake import FilesPlace, rows_of
from tests.world.orders import Order
from tests.world.pipeline_file import Settings
from tests.world.repaired_shop import RepairedShop


@dataclass(kw_only=True)
class FilesShop(RepairedShop):
    """A shop whose warehouse is a dataset at a place."""

    place: FilesPlace

    def describe_files(
        self, *, compensation: Settings | None = None, has_key: bool = True, has_time: bool = True, **settings: Any
    ) -> None:
        """Write the pipeline's file; `more` is what the warehouse has besides."""
        more: Settings = settings.pop("more", {})
        keyed = {"key": "id"} if has_key else {}
        timed = {"time": "at"} if has_time else {}
        warehouse = {
            "kind": "dataset",
            "connection": "lake",
            "format": "parquet",
            "path": self.place.path,
            **keyed,
            **timed,
            **more,
        }
        self.describe(
            has_ledger=False,
            compensation=compensation or {},
            more_points={"warehouse": warehouse},
            is_observing=compensation is None,
            **settings,
        )

    def load(self, path: str, orders: Iterable[Order]) -> None:
        """Write a file of rows, as a loader does."""
        self.place.add(path, rows_of(orders))
