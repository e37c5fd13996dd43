"""Reach the lake of the example by plain means: its catalog in PostgreSQL, its table, and the files of its table."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

CATALOG = "lake"
POSITION = pa.struct(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64())]
)
_TYPES: dict[str, pa.DataType] = {
    "order_id": pa.string(),
    "customer": pa.string(),
    "placed_at": pa.string(),
    "amount_cents": pa.int32(),
    "_kafka_metadata": POSITION,
}
_COLUMNS = pa.schema(_TYPES)


@dataclass(frozen=True, kw_only=True)
class LakeTable:
    """A table in an Iceberg catalog that PostgreSQL keeps, and the control topic of the sink that loads it.

    `commit_ms`: how often the sink commits.
    """

    dsn: str
    folder: Path
    table: str = "dw.orders"
    control_topic: str
    commit_ms: int = 3_000

    @property
    def warehouse(self) -> str:
        """The address of the folder with all files of all tables."""
        return f"file://{self.folder}"

    def catalog(self) -> SqlCatalog:
        """Open the catalog. Its tables in PostgreSQL are made when they are not there: two tasks of the sink that make
        them at once get into each other's way."""
        uri = self.dsn.replace("postgresql://", "postgresql+psycopg2://", 1)
        return SqlCatalog(CATALOG, uri=uri, warehouse=self.warehouse, pool_pre_ping="true")

    def create(self, columns: pa.Schema = _COLUMNS) -> None:
        """Create the table as the sink fills it; nothing in it refuses a second row of an order."""
        catalog = self.catalog()
        catalog.create_namespace_if_not_exists(self.table.split(".")[0])
        catalog.create_table_if_not_exists(self.table, columns, properties={"format-version": "2"})

    def load(self) -> Table:
        """Load the table as it is now."""
        return self.catalog().load_table(self.table)

    def positions(self) -> Counter[tuple[int, int]]:
        """Count the rows of each partition and offset of the topic."""
        rows = self.load().scan(selected_fields=("_kafka_metadata",)).to_arrow().to_pylist()
        return Counter((row["_kafka_metadata"]["partition"], row["_kafka_metadata"]["offset"]) for row in rows)

    def orders(self) -> Counter[str]:
        """Count the rows of each order."""
        rows = self.load().scan(selected_fields=("order_id",)).to_arrow().to_pylist()
        return Counter(str(row["order_id"]) for row in rows)

    def values(self) -> Iterator[tuple[str, tuple[str, int, str]]]:
        """Yield each row: its order, with customer, amount and time."""
        for row in self.load().scan().to_arrow().to_pylist():
            yield row["order_id"], (row["customer"], row["amount_cents"], row["placed_at"])

    def forget_summaries(self) -> None:
        """Commit something else to the table, and expire all snapshots before it: no summary of the sink is left."""
        table = self.load()
        table.append(table.scan().to_arrow().slice(0, 0))
        self.expire_older()

    def expire_older(self) -> None:
        """Expire all snapshots but the current one."""
        table = self.load()
        newest = table.current_snapshot()
        assert newest is not None
        old = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.snapshot_id != newest.snapshot_id]
        table.maintenance.expire_snapshots().by_ids(old).commit()

    def files(self) -> set[str]:
        """Return the names of the data files in the warehouse, be they in the table or not."""
        return {path.name for path in self.folder.rglob("*.parquet")}

    def listed_files(self) -> set[str]:
        """Return the names of the data files of the table."""
        return {str(path).rpartition("/")[2] for path in self.load().inspect.files().column("file_path").to_pylist()}

    def snapshot_id(self) -> int | None:
        """Return the number of the snapshot that is the table now; None: it is empty."""
        snapshot = self.load().current_snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    def roll_back(self, snapshot_id: int) -> None:
        """Make an older snapshot the table, as an operator does who wants a bad write undone."""
        self.load().manage_snapshots().rollback_to_snapshot(snapshot_id).commit()

    @contextmanager
    def renamed(self) -> Iterator[None]:
        """Give the table another name, within."""
        catalog, other = self.catalog(), f"{self.table}_aside"
        catalog.rename_table(self.table, other)
        yield
        catalog.rename_table(other, self.table)

    def control_offsets(self, group: str) -> dict[int, int]:
        """Return up to where in the control topic the newest snapshot says that the sink of a group has committed."""
        snapshot = self.load().current_snapshot()
        summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
        known = json.loads(summary.get(f"kafka.connect.offsets.{self.control_topic}.{group}", "{}"))
        return {int(partition): int(offset) for partition, offset in known.items()}

    @contextmanager
    def commits_held(self) -> Iterator[None]:
        """Hold up every commit of a table, within: its snapshot is written, and its catalog does not take it.

        Commits that are held up at the end are ended, whoever waits for them: that may be dead.
        """
        with closing(psycopg2.connect(self.dsn)) as connection, connection.cursor() as cursor:
            cursor.execute("lock table iceberg_tables in exclusive mode")
            yield
            cursor.execute(
                "select pg_terminate_backend(pid) from pg_locks "
                "where relation = 'iceberg_tables'::regclass and not granted"
            )
