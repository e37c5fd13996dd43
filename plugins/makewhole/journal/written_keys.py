"""Find what the plans of a pipeline wrote, or may have written, by business key. In the caller's transaction."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.reversal import PastReversals, ReversedCopy
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, rows_in_pieces, statements_of

_of_plans, _of_reversals = statements_of("plan"), statements_of("reversal")


def keys_written_since(
    journal: PgConnection, window: tuple[str, int, int], keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, bool]]:
    """Return which of the keys (hop, key hash) a plan of the pipeline wrote since a window revision was opened.

    The revision is (pipeline, number, revision). Each key has the plan and whether the write is proven: it is not where
    what the plan wrote cannot be known.
    """
    pipeline, number, revision = window
    rows = _of_plans(
        journal,
        "keys_written_since",
        pipeline=pipeline,
        number=number,
        revision=revision,
        hops=[hop for hop, _ in keys],
        hashes=[key_hash for _, key_hash in keys],
    )
    return {(row.hop, row.key_hash): (row.plan, row.is_proven) for row in rows}


@dataclass(frozen=True, kw_only=True)
class RedeliveredKey:
    """A key whose record a plan sent to a topic (`target`) again for a hop."""

    hop: str
    key: str
    key_hash: str
    plan: str
    target: str


def redelivered_hops(journal: PgConnection, window: Window) -> list[str]:
    """Return the hops for which the plans of a window sent records again, whatever the revision."""
    rows = _of_plans(journal, "redelivered_hops", pipeline=window.pipeline, number=window.number)
    return [hop for (hop,) in rows]


def redelivered_ends(journal: PgConnection, window: Window) -> list[tuple[str, str, int, int]]:
    """Return (target, topic id, partition, offset) behind the last records that the plans of a window wrote where they
    sent any again."""
    rows = _of_plans(journal, "redelivered_ends", pipeline=window.pipeline, number=window.number)
    return [(row.target, row.topic_id, row.partition, row.end) for row in rows]


def redelivered_keys(journal: PgConnection, window: Window) -> Iterator[list[RedeliveredKey]]:
    """Yield what the plans of a window sent again, whatever the revision, in the order of the key hashes and so many at
    a time."""
    parameters = {"pipeline": window.pipeline, "number": window.number}
    for rows in rows_in_pieces(journal, "plan", "redelivered_keys", parameters):
        yield records(RedeliveredKey, rows)


@dataclass(frozen=True, kw_only=True)
class TouchedKey:
    """A key of which a plan of a window wrote to a target, for a hop."""

    hop: str
    remedy: Remedy
    target: str
    key: str
    key_hash: str
    plan: str


def touched_ends(journal: PgConnection, window: Window) -> list[tuple[str, Remedy, str]]:
    """Return (hop, remedy, target) of what the plans of a window wrote, whatever the revision."""
    rows = _of_plans(journal, "touched_ends", pipeline=window.pipeline, number=window.number)
    return [(hop, Remedy(remedy), target) for hop, remedy, target in rows]


def touched_keys(
    journal: PgConnection, window: Window, ends: Sequence[tuple[str, Remedy, str]]
) -> Iterator[list[TouchedKey]]:
    """Yield the keys that the plans of a window wrote with some of `touched_ends`, whatever the revision, in the order
    of their hashes and so many at a time."""
    hops, remedies, targets = zip(*ends, strict=True) if ends else ((), (), ())
    parameters = {
        "pipeline": window.pipeline,
        "number": window.number,
        "hops": list(hops),
        "remedies": [remedy.value for remedy in remedies],
        "targets": list(targets),
    }
    for rows in rows_in_pieces(journal, "plan", "touched_keys", parameters):
        yield records(TouchedKey, rows)


def rows_written(
    journal: PgConnection, window: Window, target: str, since: datetime
) -> Iterator[list[tuple[str, str]]]:
    """Yield (key, key hash) of the rows that plans wrote straight into a table, so many at a time: those made for a
    window, and since a moment those of all windows of its pipeline."""
    parameters = {"pipeline": window.pipeline, "number": window.number, "target": target, "since": since}
    yield from rows_in_pieces(journal, "plan", "rows_written", parameters)


def reversals_of(journal: PgConnection, pipeline: Pipeline, window: int, key_hashes: Iterable[str]) -> PastReversals:
    """Return the reversals that a pipeline's plans wrote for copies of these keys, anywhere, oldest first.

    Actions that were refused took nothing back.
    """
    by_key: dict[str, tuple[ReversedCopy, ...]] = {}
    rows = _of_reversals(journal, "reversals_of_keys", pipeline=pipeline.name, key_hashes=sorted(set(key_hashes)))
    for row in rows:
        known = {"place": row.place or "", "identity": row.identity or "", "copy": row.copy or {}}
        by_key[row.key_hash] = (*by_key.get(row.key_hash, ()), record(ReversedCopy, row, **known))
    places = frozenset().union(*(point.places for point in pipeline.points.values()))
    return PastReversals(window=window, reversed=by_key, places=places)
