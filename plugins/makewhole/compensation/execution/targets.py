"""The two kinds of target behind one face: what is done there already, and how one more chunk is done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from makewhole.compensation.freezing.payload_file import Payload, payloads_of
from makewhole.compensation.planning.draft import place_of
from makewhole.journal.actions import actions_in
from makewhole.model.connection import Connection
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.pipeline import Pipeline, Point
from makewhole.model.plan import Action


@dataclass(frozen=True, kw_only=True)
class Target:
    """A point that compensation writes, and the way to it."""

    point: Point
    connection: Connection


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One transaction's worth, in order, as columns: `rows` of actions, `columns` of their payloads.

    `decided` are the refusals that the journal already holds, by action number.
    """

    number: int
    rows: pa.Table
    columns: pa.Table
    decided: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The actions one by one."""
        return actions_in(self.rows)

    @cached_property
    def payloads(self) -> Mapping[int, Payload]:
        """What each action writes, by its number."""
        return payloads_of(self.columns)


@dataclass(frozen=True, kw_only=True)
class Done:
    """A chunk that happened, as the target tells it. `actions` None: the target does not say, count them."""

    chunk: int
    place: str
    actions: int | None = None
    refused: Mapping[int, str] = field(default_factory=dict)


class ReadyChunk(Protocol):
    """A chunk as its target takes it."""

    def unfit(self) -> Mapping[int, str]:
        """Actions that the target would not take, decided before the chunk is written."""
        ...

    def write(self, decided: Mapping[int, str], guard: Callable[[], None], handed_over: Callable[[], None]) -> Done:
        """Do the chunk without the actions whose refusal is `decided`, or find that it is done.

        `guard` raises when the lease is lost or the plan was stopped. `handed_over` is called when all is under way,
        once in every attempt: from then on there is time for other work.
        """
        ...


class TargetWriter(Protocol):
    """What the runner asks of a target."""

    def done(self) -> list[Done]:
        """Chunks that happened, from 0 on without holes. Fences every earlier runner where the target can."""
        ...

    def ready(self, chunk: Chunk) -> ReadyChunk:
        """All that can be made of a chunk before its turn: in another thread, and nobody is asked anything."""
        ...


def targets_of(pipeline: Pipeline, connections: Mapping[str, Connection]) -> dict[str, Target]:
    """Every point of the pipeline whose connection is given, by name."""
    return {
        name: Target(point=point, connection=connections[point.connection])
        for name, point in pipeline.points.items()
        if point.connection in connections
    }


def require_same_places(actions: pa.Table, targets: Mapping[str, Target]) -> None:
    """The plan names the topics and tables it was made for; the pipeline file must still say the same.

    Raises:
        RefusedError: a target is not given, or is another thing now.
    """
    for name, place in _places(actions).rows():
        target = targets.get(name)
        if target is None:
            raise RefusedError(
                f"the plan writes to {name}, which is no point of the pipeline or has no connection; open a new "
                "revision of the window"
            )
        if place_of(target.point) != place:
            raise RefusedError(
                f"{name} is {place_of(target.point)} now and was {place} when the plan was frozen; "
                "open a new revision of the window"
            )


def _places(actions: pa.Table) -> pl.DataFrame:
    """Each `target` and `place` that is written, once; in order, but for those that are not told by a look alone."""
    columns: Any = {
        "target": pl.from_arrow(actions.column("target").cast(pa.string())),
        "before": pl.from_arrow(actions.column("before")),
    }
    frame = pl.DataFrame(columns).with_columns(
        place=pl.when(pl.col("before").str.count_matches('"place":', literal=True) == 1).then(
            pl.col("before").str.extract(r'"place":"([^"\\]*)"')
        )
    )
    told = frame.drop_nulls("place").select("target", "place").unique(maintain_order=True)
    rest = frame.filter(pl.col("place").is_null())
    read = rest.select("target", place=pl.col("before").str.json_path_match("$.place")).unique(maintain_order=True)
    return pl.concat([told, read]).unique(maintain_order=True)


def require_receipts_kept(name: str, done: int, chunks_in_journal: int, chunks_planned: int) -> None:
    """The target must know at least what the journal has seen there.

    Raises:
        CorruptionError: the marker expired or the receipts were removed: nothing says any more what was written.
    """
    if done < chunks_in_journal:
        raise CorruptionError(
            f"{name} remembers {done} chunks of this plan and the journal has seen {chunks_in_journal}: "
            "the marker offset expired (offsets.retention.minutes) or receipts were removed. Nothing more is written; "
            "open a new revision of the window, which looks at what is really there"
        )
    if done > chunks_planned:
        raise CorruptionError(
            f"{name} says {done} chunks of this plan are done and it has only {chunks_planned}; somebody else "
            "uses its marker or receipts. Nothing more is written"
        )
