"""Ask every system of a pipeline what it can keep of the delivery that the pipeline claims. Nothing is written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from makewhole.compute.decode.unread_keys import is_compacted_by_key
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.scan.topic import ScanRequest, scan_topic
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.delivery.weaknesses import Weakness, worst_first
from makewhole.model.errors import MakewholeError
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, TopicPoint, can_look_up, has_log
from makewhole.window.context import table_shape
from makewhole.window.delivery.claims import (
    HopClaim,
    claim_of,
    claim_of_table,
    claims,
    forbids_loss,
    is_of_events,
    needed_time,
)
from makewhole.window.delivery.producers import inferred, weak_producers
from makewhole.window.delivery.readers import weak_reader
from makewhole.window.delivery.topics import JudgedTopic, unread_settings, weak_settings

_NEWEST_OFFSETS = 100_000
"""How many offsets at the end of each partition say what its producers are like now."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Claims, the weaknesses of them, what the logs show of producers (by topic), and what could not be asked: (of
    which thing, why)."""

    claims: tuple[HopClaim, ...]
    weaknesses: tuple[Weakness, ...]
    producers: Mapping[str, Mapping[str, object]]
    problems: tuple[tuple[str, str], ...]


def examine(pipeline: Pipeline, connections: Mapping[str, Connection], now: datetime | None = None) -> Examination:
    """Return what every system of a pipeline gives less than is claimed. `connections` may lack some, and what they
    lead to is left out. What does not answer does not stop the rest."""
    return _Examiner(pipeline, connections, now or datetime.now(UTC)).examine()


class _Examiner:
    """The state of one examination."""

    def __init__(self, pipeline: Pipeline, connections: Mapping[str, Connection], now: datetime) -> None:
        self._pipeline, self._connections, self._now = pipeline, connections, now
        self._found: list[Weakness] = []
        self._problems: list[tuple[str, str]] = []
        self._producers: dict[str, Mapping[str, object]] = {}

    def examine(self) -> Examination:
        places: set[str] = set()
        for point in self._pipeline.ordered_points():
            place = self._pipeline.place_of(point.name)
            if place in places or point.connection not in self._connections:
                continue
            places.add(place)
            look = self._look_at_topic if has_log(point) else self._look_at_table
            self._ask(point.name, partial(look, point))  # type: ignore[arg-type]  # each of its own kind
        return Examination(
            claims=tuple(claims(self._pipeline)),
            weaknesses=worst_first(self._found),
            producers=self._producers,
            problems=tuple(self._problems),
        )

    def _ask(self, name: str, ask: Callable[[], Iterable[Weakness]]) -> None:
        try:
            for weakness in ask():
                self._found.append(weakness)
        except MakewholeError as error:
            self._problems.append((name, str(error)))

    def _look_at_table(self, point: TablePoint) -> Iterable[Weakness]:
        assert can_look_up(point), point.name
        tables, claim = tables_of(self._connections[point.connection]), claim_of_table(self._pipeline, point)
        return tables.weaknesses(table_shape(self._pipeline, point), claim)

    def _look_at_topic(self, point: TopicPoint) -> Iterable[Weakness]:
        """Yield what weakens a topic, its producers, and what reads it."""
        topic = self._scanned(point)
        refusal = unread_settings(topic)
        if refusal is not None:
            self._problems.append((point.name, refusal))
        for part in topic.scan.partitions:
            if part.failure is not None:
                self._problems.append((point.name, part.failure))
        self._producers[point.name] = inferred(topic)
        yield from weak_settings(topic)
        into = self._pipeline.hops_into(point.name)
        yield from weak_producers(topic, is_copied=any(has_log(self._pipeline.points[hop.source]) for hop in into))
        for hop in self._pipeline.readers_of(point.name):
            self._ask(hop.name, partial(self._look_at_reader, point, hop, topic))

    def _scanned(self, point: TopicPoint) -> JudgedTopic:
        pipeline, connection = self._pipeline, kafka_of(self._connections[point.connection])
        scan = scan_topic(connection, point.topic, ScanRequest(newest=_NEWEST_OFFSETS, is_crc_checked=False))
        into, from_here = pipeline.hops_into(point.name), pipeline.readers_of(point.name)
        return JudgedTopic(
            scan=scan,
            forbids_loss=forbids_loss([*into, *from_here]) or point in pipeline.topics_alone,
            forbids_repeats=any(claim_of(hop).delivery.forbids_repeats for hop in into),
            is_of_events=is_of_events(pipeline, point),
            is_compacted_by_key=is_compacted_by_key(point.key),
            needed=needed_time(pipeline),
            longest_pending=pipeline.pending_max_age,
            has_group=any(hop.consumer_group is not None for hop in from_here),
        )

    def _look_at_reader(self, point: TopicPoint, hop: Hop, topic: JudgedTopic) -> Iterable[Weakness]:
        target = self._connections.get(self._pipeline.points[hop.target].connection)
        if target is None:
            return
        with TopicLog(kafka_of(self._connections[point.connection]), point.topic) as log:
            yield from weak_reader(self._pipeline, claim_of(hop), topic, log, target, self._now)
