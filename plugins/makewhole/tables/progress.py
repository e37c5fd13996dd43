"""Describe what a sink keeps of its own progress beside its rows: in a table, or in the commits of an Iceberg table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from makewhole.model.errors import RefusedError
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint


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


@dataclass(frozen=True, kw_only=True)
class SinkGroup:
    """One of Iceberg's sinks: the group of its tasks, and its control topic."""

    name: str
    control_topic: str


@dataclass(frozen=True, kw_only=True)
class SinkCommit:
    """The newest commit of the sink among the snapshots that a table's current one descends from.

    `offsets`: up to where in the control topic the sink has committed, by partition; None: no snapshot is the sink's.
    `files`: the data files that any of these snapshots has. `since`: where the oldest of the sink's stands, where older
    ones have expired, so that files from before it may have been there; empty: none has.
    """

    snapshot_id: int | None = None
    commit_id: str | None = None
    valid_through: str | None = None
    offsets: Mapping[int, int] | None = None
    files: frozenset[str] = frozenset()
    since: Mapping[int, int] | None = None


def refuse_sink(store: TablePoint, sink: SinkGroup) -> NoReturn:
    """Refuse to ask a table that no sink of Iceberg loads.

    Raises:
        RefusedError: always.
    """
    raise RefusedError(
        f"{store.table} is no Iceberg table, and so the sink of {sink.control_topic} has no commit there; take "
        "`control_topic` out of the hop"
    )
