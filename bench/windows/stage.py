"""Set up what whole windows are measured on: the service, its systems, and orders in them."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measuring.data_set import millions
from bench.measuring.meter import Cost
from bench.topics.fill import remove
from bench.windows.orders import Counts, Orders, RowsApart, fill_tables, fill_topic
from bench.windows.service import ONE_MACHINE, PIPELINE, Service, SparkMaster
from makewhole.stack.postgres_server import PostgresServer

MAKEWHOLE = "makewhole"
Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The service with its systems, the orders in them, and the end of the window."""

    service: Service
    orders: Orders
    end: datetime

    def judged(self, master: SparkMaster = ONE_MACHINE, *, read_again: bool = True) -> tuple[Cost, str]:
        """Judge the window once more, a revision, which reads every point again unless it is not asked to; return the
        cost, and the seconds of each step in a sentence.

        Raises:
            RuntimeError: the verdicts are not those that were planted.
        """
        window = self.service.open_window(self.end, read_again=read_again)
        counts, cost, message = self.service.run_window(window, master)
        self.require_planted(MAKEWHOLE, counts)
        return cost, message

    def require_planted(self, side: str, counts: Counts) -> None:
        """Require that a side has found what was planted, and nothing else."""
        self._require(side, {place: keys for place, keys in counts.items() if keys}, self.orders.planted)

    def require_rows_apart(self, side: str, rows: Mapping[str, RowsApart]) -> None:
        """Require that a side that compares rows has found those that differ by what was planted, and no others."""
        self._require(side, rows, self.orders.rows_apart)

    def _require(self, side: str, outcome: Mapping[Any, Any], planted: Mapping[Any, Any]) -> None:
        if outcome != planted:
            raise RuntimeError(f"{side}: {self.orders.name}: found {outcome}, planted are {planted}")

    def line(self, part: str, side: str, cost: Cost, message: str = "") -> str:
        """Return the line that reports a run."""
        taken = f"{cost.wall_seconds:6.1f} s, {cost.cpu_seconds:6.1f} s of cores"
        return f"{part:8} {millions(self.orders.number):18} {side:18} {taken}{f': {message}' if message else ''}"


@contextmanager
def prepared(bootstrap: str, folder: Path, orders: Orders) -> Iterator[Stage]:
    """Yield a stage with the orders in a ledger, a topic and a store; remove all of them afterwards."""
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=orders.name, ignore_cleanup_errors=True) as home,
        PostgresServer(Path(home) / "postgres", is_durable=False) as server,
    ):
        service = Service.at(server, bootstrap, Path(home))
        fill_tables(service.database, orders)
        fill_topic(bootstrap, orders)
        try:
            service.write_pipeline(orders.pipeline_file(PIPELINE, kafka="log", postgres="db"), orders.files)
            yield Stage(service=service, orders=orders, end=datetime.now(UTC))
        finally:
            remove(bootstrap, orders.name)
