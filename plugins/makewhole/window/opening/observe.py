"""Record what exists at the sources of a pipeline: an absence counts only the settle time after this was seen."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from makewhole.journal import observations, windows
from makewhole.journal.observations import Observation
from makewhole.kafka.lineage import Epochs, answer_all, ask_epochs
from makewhole.kafka.offsets import LogEnd, TopicLog, TopicState
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.errors import TransientError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint, can_look_up, has_log
from makewhole.model.window import Window
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class ObservedTopic:
    """The state of a topic at one moment. `stable`: stable offset and leader epoch by partition; `epochs`: the leader
    epochs of the last records below it."""

    state: TopicState
    stable: Mapping[int, LogEnd]
    epochs: Mapping[int, Epochs] = field(default_factory=dict)


@contextmanager
def topic_logs(points: Iterable[Point], connections: Mapping[str, Connection]) -> Iterator[dict[str, TopicLog]]:
    """Open a connection to the log of every topic among the points; by the name of the point."""
    with ExitStack() as stack:
        logs = {}
        for point in points:
            if has_log(point):
                log = TopicLog(kafka_of(connections[point.connection]), point.topic)
                logs[point.name] = stack.enter_context(log)
        yield logs


def read_topic_state(log: TopicLog) -> ObservedTopic:
    """Read the state of a topic now."""
    state, stable = log.describe(), log.stable_ends()
    last = {
        partition: ask_epochs(end.leader_epoch, end.offset - 1, end.offset)
        for partition, end in stable.items()
        if end.offset and end.leader_epoch >= 0
    }
    return ObservedTopic(state=state, stable=stable, epochs=answer_all(log.ends_of_leader_epochs, last))


def require_same_leaders(log: TopicLog, before: ObservedTopic) -> None:
    """Refuse to go on when a leader changed: only a leader that stayed has truncated nothing since it was read.

    Raises:
        TransientError: the topic is another one, or a partition has another leader now: what was read may be gone.
    """
    if log.describe().topic_id != before.state.topic_id:
        raise TransientError(f"topic {log.topic} was made again while its offsets were being frozen; try again")
    for partition, end in log.stable_ends().items():
        if partition in before.stable and end.leader_epoch != before.stable[partition].leader_epoch:
            raise TransientError(
                f"the leader of {log.topic}/{partition} changed while its offsets were being frozen; try again"
            )


def observe(
    journal: PgConnection,
    pipeline: Pipeline,
    connections: Mapping[str, Connection],
    topics: Mapping[str, ObservedTopic],
    places: Mapping[str, str],
) -> datetime:
    """Record what exists at every point that can be a source; return the moment at which all of it existed (S1), by the
    journal's clock. `places`: where tables stand, by point."""
    ledgers: dict[str, str] = {}
    for point in pipeline.points.values():
        if point.kind is PointKind.LEDGER:
            ledgers[point.name] = tables_of(connections[point.connection]).seen_now()
    # After the reads: everything that they returned existed by this moment.
    now = observations.moment_now(journal)
    for name, topic in topics.items():
        stable = {partition: end.offset for partition, end in topic.stable.items()}
        topic_id = topic.state.topic_id
        seen = Observation(
            point=name, observed_at=now, topic_id=topic_id, stable_offsets=stable, leader_epochs=topic.epochs
        )
        observations.put(journal, pipeline.name, seen)
    for name, visible in ledgers.items():
        seen = Observation(point=name, observed_at=now, pg_snapshot=visible, place=places.get(name))
        observations.put(journal, pipeline.name, seen)
    return now


def settled_at(journal: PgConnection, pipeline: Pipeline, window: Window) -> datetime:
    """Return the moment from which on an absence counts: the settle time after everything in the window, and everything
    that compensation wrote for it, was first seen to exist.

    Where that is longer ago than the settle time before the window was opened, a later moment does as well.
    """
    moments, settled = [], window.opened_at - pipeline.settle
    for point in pipeline.ordered_points():
        if point.kind is PointKind.STORE:
            continue
        observed = observations.since(journal, pipeline.name, point.name, settled)
        covering = [entry.observed_at for entry in observed if _covers(entry, window, point)]
        moments.append(min(covering, default=window.opened_at))
    written = windows.last_chunk(journal, pipeline.name, window.number)
    moments += [] if written is None else [written]
    return max(moments, default=window.opened_at) + pipeline.settle


def _covers(entry: Observation, window: Window, point: TablePoint | TopicPoint) -> bool:
    """Return whether everything of the window existed at this observation."""
    if can_look_up(point):
        return entry.observed_at >= window.end
    stable = entry.stable_offsets or {}
    return all(
        part.topic_id == entry.topic_id and stable.get(part.partition, 0) >= part.hi
        for part in window.ranges[point.name]
    )
