"""Describe what a sink keeps of its own progress beside its rows."""

from dataclasses import dataclass

from makewhole.model.points import SinkProgress, TablePoint


@dataclass(frozen=True, kw_only=True)
class ProgressRows:
    """The rows of a partition in a sink's own progress: their number, how many of them have an offset, and the least
    and the greatest of these, as PostgreSQL writes them."""

    rows: int
    offsets: int
    least: str | None
    greatest: str | None


def progress_table(progress: SinkProgress, store: TablePoint) -> TablePoint:
    """Return the table with a sink's progress as a point beside its store."""
    return TablePoint(
        name=store.name,
        kind=store.kind,
        connection=store.connection,
        table=progress.table,
        key=(progress.partition,),
    )
