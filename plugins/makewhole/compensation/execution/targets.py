"""Define targets, chunks, and the protocols between a runner and either kind of target."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from makewhole.journal.actions import ArrowColumn, in_parts
from makewhole.journal.replayed_positions import PlanInJournal
from makewhole.model.connection import Connection
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Plan
from makewhole.model.points import Point, TablePoint
from makewhole.model.positions import RecordPositions
from makewhole.model.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class Target:
    """A point that compensation writes, and its connection. `hops`: those that start from it. `pending_max_age`: of
    its pipeline."""

    point: Point
    connection: Connection
    hops: tuple[Hop, ...] = ()
    pending_max_age: timedelta = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One transaction's worth of actions, in order, as columns: `rows` of actions, `columns` of their payloads.

    `refused`: the refusals that the journal already holds, by action number.
    """

    number: int
    rows: pa.Table
    columns: pa.Table
    refused: Mapping[int, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DoneChunk:
    """A chunk that happened, by the target's receipt. `actions` None: the receipt does not say, count them."""

    chunk: int
    place: str
    actions: int | None = None
    refused: Mapping[int, Refusal] = field(default_factory=dict)


class PlanAtTarget(Protocol):
    """A plan at one target, as the plan itself and the journal know it."""

    @property
    def plan(self) -> Plan: ...

    @property
    def target(self) -> str:
        """Name of the target's point."""
        ...

    @property
    def lease_epoch(self) -> int:
        """Epoch of the lease under which the runner works."""
        ...

    @property
    def log_ends(self) -> Mapping[int, int]:
        """Where the target's log ended when the plan was first begun, by partition."""
        ...

    @property
    def is_begun(self) -> bool:
        """Whether it was begun before this attempt."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether every chunk happened, at every target."""
        ...

    @property
    def in_journal(self) -> PlanInJournal:
        """The plan as the journal knows it."""
        ...

    @property
    def keys(self) -> ArrowColumn:
        """Business keys of all its actions at the target."""
        ...

    @property
    def chunks(self) -> int:
        """Number of chunks at the target."""
        ...

    def chunk(self, number: int) -> Chunk:
        """Return a chunk with the refusals that the journal holds."""
        ...

    def chunks_in_journal(self) -> int:
        """Return the number of chunks of which the journal has receipts."""
        ...

    def chunks_refused_whole(self) -> set[int]:
        """Return the chunks of which nothing is ever written."""
        ...

    def positions(self, number: int, topic_id: str) -> RecordPositions:
        """Return where the records of a chunk stand, if it was committed."""
        ...

    def record_positions(self, number: int, topic_id: str, positions: RecordPositions) -> None:
        """Record where the records of a chunk stand, before they are committed; raises when the lease is lost."""
        ...


class Arrivals(Protocol):
    """Report which keys have arrived by themselves since the window was judged, or were erased."""

    def arrived(self, rows: pa.Table) -> Mapping[int, Refusal]:
        """Return why the records of these actions (rows of a chunk) are not sent, by action number."""
        ...

    def erased_by_tombstones(self, store: TablePoint, keys: Sequence[str]) -> Mapping[str, Refusal]:
        """Return those of the keys that tombstones erased from a store since, each with why it is not written."""
        ...

    def note_own(self, positions: RecordPositions) -> None:
        """Note records that the plan writes itself, which are no arrivals."""
        ...


KeptRows = Callable[[str, pa.Table], Mapping[int, Refusal]]
"""Return why rows of a table are not put aside, by the numbers of the actions (rows of a chunk) that would."""


class PreparedChunk(Protocol):
    """A chunk as its target takes it."""

    def refusals(self) -> Mapping[int, Refusal]:
        """Return the actions that the target would not take, each with its refusal, before the chunk is written."""
        ...

    def write(
        self, refused: Mapping[int, Refusal], guard: Callable[[], None], on_sent: Callable[[], None]
    ) -> DoneChunk:
        """Write the chunk without the `refused` actions, or find that it is done.

        `guard` raises when the lease is lost or the plan was stopped. `on_sent` is called once in every attempt, when
        little is left but to wait for the server.
        """
        ...


class TargetWriter(Protocol):
    """The requests of a runner to a target."""

    def done(self) -> list[DoneChunk]:
        """Fence earlier runners where the target can, and return the chunks that happened, from 0 on without holes."""
        ...

    def prepare(self, chunk: Chunk) -> PreparedChunk:
        """Prepare a chunk before its turn: in another thread, without I/O."""
        ...


def targets_of(pipeline: Pipeline, connections: Mapping[str, Connection]) -> dict[str, Target]:
    """Return every point of the pipeline whose connection is given, by name."""
    return {
        name: Target(
            point=point,
            connection=connections[point.connection],
            hops=pipeline.hops_from(name),
            pending_max_age=pipeline.pending_max_age,
        )
        for name, point in pipeline.points.items()
        if point.connection in connections
    }


def require_same_places(actions: pa.Table, targets: Mapping[str, Target]) -> None:
    """Refuse a plan whose targets are other topics or tables now than when it was frozen.

    Raises:
        RefusedError: a target is not given, or is another topic or table now.
    """
    for name, place in _written_places(actions).rows():
        target = targets.get(name)
        if target is None:
            raise RefusedError(
                f"the plan writes to {name}, which is no point of the pipeline or has no connection; open a new "
                "revision of the window"
            )
        if target.point.written_place != place:
            raise RefusedError(
                f"{name} is {target.point.written_place} now and was {place} when the plan was frozen; "
                "open a new revision of the window"
            )


def _written_places(actions: pa.Table) -> pl.DataFrame:
    """Return each `target` and `place` that is written, once."""
    return pl.concat([_places_of_part(part) for part in in_parts(actions)]).unique(maintain_order=True)


def _places_of_part(actions: pa.Table) -> pl.DataFrame:
    """Return each `target` and `place` of some actions; first those that need no JSON parser, then the others."""
    columns: Any = {
        "target": pl.from_arrow(actions.column("target").cast(pa.string())),
        "before": pl.from_arrow(actions.column("before")),
    }
    frame = pl.DataFrame(columns).with_columns(
        place=pl.when(pl.col("before").str.count_matches('"place":', literal=True) == 1).then(
            pl.col("before").str.extract(r'"place":"([^"\\]*)"')
        )
    )
    matched = frame.drop_nulls("place").select("target", "place").unique(maintain_order=True)
    rest = frame.filter(pl.col("place").is_null())
    parsed = rest.select("target", place=pl.col("before").str.json_path_match("$.place")).unique(maintain_order=True)
    return pl.concat([matched, parsed])


def require_receipts_kept(name: str, done: int, chunks_in_journal: int, chunks_planned: int) -> None:
    """Refuse to go on when a target has fewer receipts than the journal, or more than the plan has chunks.

    Raises:
        CorruptionError: the marker expired, or receipts were removed or added by another writer.
    """
    if done < chunks_in_journal:
        raise CorruptionError(
            f"{name} remembers {done} chunks of this plan and the journal has seen {chunks_in_journal}: "
            "the marker offset expired (offsets.retention.minutes) or receipts were removed. Nothing more is written; "
            "open a new revision of the window, which looks at what is really there"
        )
    if done > chunks_planned:
        raise CorruptionError(
            f"{name} says {done} chunks of this plan are done and it has only {chunks_planned}; another writer "
            "uses its marker or receipts. Nothing more is written"
        )
