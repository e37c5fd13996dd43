"""Look for transactions that have not ended, in the tables and the topics of a pipeline: nothing is written.

Until they end, what they hold is not known: a row that a prepared transaction inserted is seen by no one, and a record
in or behind an open transaction by no reader of committed records. None is settled here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.open_transactions import OpenTransaction, open_transactions
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.errors import MakewholeError
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, TopicPoint, can_look_up, has_log
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.window.context import table_shape
from makewhole.window.readers.hop_offsets import read_hop_offsets

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class PreparedInTable:
    """A prepared transaction that wrote to the table of a point."""

    point: TablePoint
    transaction: TransactionInDoubt


@dataclass(frozen=True, kw_only=True)
class OpenInTopic:
    """A transaction that is open in the topic of a point."""

    point: TopicPoint
    transaction: OpenTransaction


@dataclass(frozen=True, kw_only=True)
class SinkPlace:
    """Where what loads a table with prepared transactions stands: the offset that it reads next, by partition; None
    where it is not known."""

    hop: Hop
    topic: str
    offsets: Mapping[int, int | None]


@dataclass(frozen=True, kw_only=True)
class Unsettled:
    """Transactions that were found. `problems`: (point, why it could not be asked)."""

    prepared: tuple[PreparedInTable, ...]
    open: tuple[OpenInTopic, ...]
    sinks: tuple[SinkPlace, ...]
    problems: tuple[tuple[str, str], ...]

    @property
    def is_any(self) -> bool:
        """Whether a transaction waits for its end."""
        return bool(self.prepared or self.open)


def look_for_unsettled(pipeline: Pipeline, connections: Mapping[str, Connection]) -> Unsettled:
    """Return the transactions that wait for their end, point by point; one that cannot be asked does not stop the
    rest."""
    problems: list[tuple[str, str]] = []

    def asked(name: str, ask: Callable[[], Iterator[_T]]) -> list[_T]:
        try:
            return list(ask())
        except MakewholeError as error:
            problems.append((name, str(error)))
            return []

    prepared: list[PreparedInTable] = []
    waiting: list[OpenInTopic] = []
    for point in pipeline.ordered_points():
        if can_look_up(point):
            prepared += asked(point.name, partial(_prepared, pipeline, point, connections))
        elif has_log(point):
            waiting += asked(point.name, partial(_open, point, connections))
    held = {item.point.name for item in prepared}
    sinks: list[SinkPlace] = []
    for hop in pipeline.hops:
        if hop.target in held and has_log(pipeline.points[hop.source]):
            sinks += asked(hop.name, partial(_sink, pipeline, hop, connections))
    return Unsettled(prepared=tuple(prepared), open=tuple(waiting), sinks=tuple(sinks), problems=tuple(problems))


def _prepared(
    pipeline: Pipeline, point: TablePoint, connections: Mapping[str, Connection]
) -> Iterator[PreparedInTable]:
    keys_in_doubt = tables_of(connections[point.connection]).keys_in_doubt(table_shape(pipeline, point), ())
    for transaction in keys_in_doubt.transactions:
        yield PreparedInTable(point=point, transaction=transaction)


def _open(point: TopicPoint, connections: Mapping[str, Connection]) -> Iterator[OpenInTopic]:
    for transaction in open_transactions(kafka_of(connections[point.connection]), point.topic):
        yield OpenInTopic(point=point, transaction=transaction)


def _sink(pipeline: Pipeline, hop: Hop, connections: Mapping[str, Connection]) -> Iterator[SinkPlace]:
    source, target = pipeline.topic(hop.source), pipeline.table(hop.target)
    with TopicLog(kafka_of(connections[source.connection]), source.topic) as log:
        stands = read_hop_offsets(log, hop, target, connections[target.connection])
    if stands is not None:
        yield SinkPlace(hop=hop, topic=source.topic, offsets=dict(sorted(stands.committed.items())))
