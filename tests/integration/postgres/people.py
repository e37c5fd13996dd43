"""Read a database of people's as the snapshot does."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl
import psycopg2

from makewhole.compute.normalise import table_frame
from makewhole.compute.row_filter import TypedTerm
from makewhole.model.connection import PostgresConnection
from makewhole.model.points import PointKind, TablePoint
from makewhole.postgres.read.export import ExportReader, hold_view
from makewhole.sql import PgConnection
from makewhole.tables.reading import ReadPlan
from makewhole.tables.shape import TableShape, TimeBounds
from tests.world.sql import Rows, run_sql


@dataclass(frozen=True, kw_only=True)
class People:
    """Another system's database."""

    connection: PostgresConnection

    def sql(self, statement: str, *values: Any) -> Rows:
        """Run plain SQL, committed."""
        return run_sql(self.connection.dsn, statement, *values)

    def session(self, stack: ExitStack) -> PgConnection:
        """Open a session, which is left open."""
        connection: PgConnection = psycopg2.connect(self.connection.dsn)
        stack.callback(connection.close)
        return connection

    def shape(
        self,
        table: str = "rows",
        key: tuple[str, ...] = ("id",),
        compare: dict[str, str] | None = None,
        filters: dict[str, tuple[TypedTerm, ...]] | None = None,
        **columns: Any,
    ) -> TableShape:
        point = TablePoint(name="rows", kind=PointKind.LEDGER, connection="people", table=table, key=key, **columns)
        return TableShape(point=point, compare=compare or {}, filters=filters or {})

    def read(self, shape: TableShape, bounds: TimeBounds | None = None) -> pl.DataFrame:
        """Read the whole table as the snapshot does."""
        with planned(self.connection, shape, bounds, 4) as plan:
            reader = ExportReader(self.connection, shape, plan.view)
            frames = [frame for part in plan.parts for frame in reader.part(bounds, part)]
        rows = pl.concat(frames) if frames else pl.DataFrame()
        assert len(rows) == reader.counted
        return rows

    def look_up(self, shape: TableShape, keys: Sequence[str]) -> list[str]:
        """Return the keys of the rows that the look-up finds, sorted."""
        frames = list(ExportReader(self.connection, shape, None).keys(keys))
        return sorted(pl.concat(frames)["key"].to_list()) if frames else []

    def texts(self, shape: TableShape) -> pl.DataFrame:
        """Return the keys frame of the whole table, by key."""
        return table_frame(self.read(shape), dict(shape.compare))[0].sort("key")


@contextmanager
def planned(
    connection: PostgresConnection, shape: TableShape, bounds: TimeBounds | None, parts: int
) -> Iterator[ReadPlan]:
    """Hold a view of a table open, and plan the reading of the rows inside the bounds."""
    with hold_view(connection, shape) as view:
        yield view.plan(bounds, parts)
