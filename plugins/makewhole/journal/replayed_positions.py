"""Read and write where the records of plans stand in their topics. Every function runs in the caller's transaction."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from makewhole.model.plan import Plan
from makewhole.model.positions import PositionSpan, RecordPositions, SeenLog
from makewhole.model.window import Window
from makewhole.sql import PgConnection, rows_in_pieces, statements_of

_run = statements_of("replayed_position")


@dataclass(frozen=True, kw_only=True)
class WrittenChunk:
    """A chunk of a plan at a target, in one incarnation of the target's topic."""

    plan: str
    target: str
    chunk: int
    topic_id: str


def put(journal: PgConnection, chunk: WrittenChunk, positions: RecordPositions) -> None:
    """Write where the records of a chunk stand, before they are committed; replaces what an earlier attempt wrote."""
    _run(journal, "forget_positions", **vars(chunk))
    columns = {"seqs": positions.seqs, "partitions": positions.partitions, "offsets": positions.offsets}
    _run(journal, "put_positions", **(vars(chunk) | {name: _array(column) for name, column in columns.items()}))


def of_chunk(journal: PgConnection, chunk: WrittenChunk) -> RecordPositions:
    """Return where the records of a chunk stand, as the attempt noted them that came last to its commit."""
    return _positions(_run(journal, "positions_of_chunk", **vars(chunk)))


def of_plan(journal: PgConnection, plan: str, target: str, topic_id: str) -> RecordPositions:
    """Return where a plan wrote to a topic."""
    return _positions(_run(journal, "positions_of_plan", plan=plan, target=target, topic_id=topic_id))


def between(journal: PgConnection, spans: Iterable[PositionSpan]) -> Iterator[list[Any]]:
    """Yield the records that plans wrote within these spans, or noted and did not commit, so many at a time: those of
    all pipelines, as several may read a topic. Rows with `plan`, `partition`, `offset`, `key_hash` and `is_produced`.

    The key hash is of the key that the record has there; None: of a reversal that no hop judges. Produced: the topic
    had no record of the key before, so that the record repeats none.
    """
    wanted = list(spans)
    if not wanted:
        return
    parameters = {
        "topic_ids": [span.topic_id for span in wanted],
        "firsts": [span.first for span in wanted],
        "lasts": [span.last for span in wanted],
        "los": [span.lo for span in wanted],
        "his": [span.hi for span in wanted],
    }
    yield from rows_in_pieces(journal, "replayed_position", "positions_between", parameters)


def keys_written(
    journal: PgConnection, plans: Iterable[str], topic_ids: Iterable[str]
) -> Iterator[list[tuple[str | None]]]:
    """Yield the hashes of the keys that plans wrote to a topic, or noted and did not commit, so many at a time. None:
    of reversals that no hop judges."""
    parameters = {"plans": sorted(plans), "topic_ids": sorted(topic_ids)}
    yield from rows_in_pieces(journal, "replayed_position", "keys_written", parameters)


@dataclass(frozen=True, kw_only=True)
class SentRecord:
    """The place of a record of a key that a plan sent, or may have sent, and for how long it has been there."""

    topic_id: str
    partition: int
    offset: int
    age: timedelta


def sent_of_keys(journal: PgConnection, key_hashes: Iterable[str], *, but: str) -> dict[str, list[SentRecord]]:
    """Return by key hash the records that plans sent, whichever pipeline is theirs; those of the plan `but` are left
    out. What a plan noted and did not commit is among them while that is not known."""
    sent: dict[str, list[SentRecord]] = {}
    for key_hash, topic_id, partition, offset, age in _run(journal, "sent_of_keys", hashes=sorted(key_hashes), but=but):
        record = SentRecord(topic_id=topic_id, partition=partition, offset=offset, age=age)
        sent.setdefault(key_hash, []).append(record)
    return sent


def last_seen(journal: PgConnection, plan: Plan, point: str) -> SeenLog | None:
    """Return what was observed of a topic when the plan's window revision was opened: what was judged reaches at least
    as far. None: nothing was observed."""
    return _seen(journal, plan.pipeline, (plan.window, plan.revision), point)


def seen_when_opened(journal: PgConnection, window: Window, point: str) -> SeenLog | None:
    """Return what was observed of a topic when a window revision was opened. None: nothing was observed."""
    return _seen(journal, window.pipeline, (window.number, window.revision), point)


def _seen(journal: PgConnection, pipeline: str, revision: tuple[int, int], point: str) -> SeenLog | None:
    parameters = {"pipeline": pipeline, "number": revision[0], "revision": revision[1], "point": point}
    for topic_id, offsets, epochs in _run(journal, "last_seen", **parameters):
        return SeenLog(
            topic_id=topic_id,
            offsets={int(number): at for number, at in (offsets or {}).items()},
            leader_epochs={int(number): tuple(map(tuple, ends)) for number, ends in (epochs or {}).items()},
        )
    return None


@dataclass(frozen=True, kw_only=True)
class PlanInJournal:
    """A plan at one target, as the journal knows it.

    `transaction` opens one there. `log_ends`: where the logs of the targets ended when the plan was first begun, by
    target and partition. `renew` renews the lease, where there is one.
    """

    transaction: Callable[[], AbstractContextManager[PgConnection]]
    plan: Plan
    target: str
    log_ends: Mapping[str, Mapping[int, int]]
    renew: Callable[[], None] = lambda: None

    def seen(self, point: str) -> SeenLog | None:
        """Return up to where a topic was looked at for the findings of the plan, at least; None: it was not looked at.

        That is where it ended when the window revision was opened, or when the plan was first begun.
        """
        with self.transaction() as journal:
            seen = last_seen(journal, self.plan, point)
        if seen is None and point in self.log_ends:
            return SeenLog(topic_id=None, offsets=self.log_ends[point])
        return seen

    def sent_before(self, key_hashes: Iterable[str]) -> Mapping[str, Sequence[SentRecord]]:
        """Return the records of keys that other plans sent, by key hash."""
        with self.transaction() as journal:
            return sent_of_keys(journal, key_hashes, but=self.plan.id)

    def own_positions(self, point: str, topic_id: str) -> RecordPositions:
        """Return where the plan wrote to a topic, whichever of its targets that is."""
        with self.transaction() as journal:
            return of_plan(journal, self.plan.id, point, topic_id)


def _positions(rows: Sequence[tuple[int, list[int], list[int]]]) -> RecordPositions:
    return RecordPositions(
        seqs=[seq for _, seqs, _ in rows for seq in seqs],
        partitions=[partition for partition, seqs, _ in rows for _ in seqs],
        offsets=[offset for _, _, offsets in rows for offset in offsets],
    )


def _array(numbers: Sequence[int]) -> str:
    """Return numbers as the text of an array: thousands of them are slow as a list of the driver's."""
    return "{" + ",".join(map(str, numbers)) + "}"
