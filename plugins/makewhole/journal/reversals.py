"""The reversals in the journal: what no later plan may take back again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from makewhole.model.pipeline import Pipeline
from makewhole.model.reversal import PastReversals, ReversedCopy
from makewhole.sql import PgConnection, load_queries


def reversals_of(journal: PgConnection, pipeline: Pipeline, window: int, key_hashes: Iterable[str]) -> PastReversals:
    """What the plans of a pipeline took back of these keys, in whatever place and window, oldest first.

    In the caller's transaction; actions that were refused took nothing back.
    """
    found: dict[str, tuple[ReversedCopy, ...]] = {}
    parameters = {"pipeline": pipeline.name, "key_hashes": sorted(set(key_hashes))}
    for key_hash, plan, number, seq, target, place, copy, is_done in _rows(journal, "reversals_of_keys", parameters):
        one = ReversedCopy(
            plan=plan, window=number, seq=seq, target=target, place=place or "", copy=copy or {}, is_done=is_done
        )
        found[key_hash] = (*found.get(key_hash, ()), one)
    places = frozenset(point.place for point in pipeline.points.values())
    return PastReversals(window=window, reversed=found, places=places)


def reversal_keys(journal: PgConnection, pipeline: str, plans: Sequence[str]) -> list[tuple[str, str]]:
    """(plan, key hash) of every reversal that these plans of the pipeline may have written to a topic on a hop, by the
    business key that it has there."""
    rows = _rows(journal, "reversal_keys", {"pipeline": pipeline, "plans": list(plans)})
    return [(plan, key_hash) for plan, key_hash in rows]


def _rows(journal: PgConnection, name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with journal.cursor() as cursor:
        cursor.execute(load_queries("reversal")[name], parameters)
        return cursor.fetchall()
