"""Read what the windows that were compared knew of points, of which the newest of them may not have some."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.sql import PgConnection, records, statements_of

_run = statements_of("window_history")


@dataclass(frozen=True, kw_only=True)
class PointKeys:
    """By which types (`key_layout`) and from which fields the newest compared window that had a point read its key, as
    they are stored with a window."""

    name: str
    key_layout: Sequence[str]
    key_fields: Sequence[Mapping[str, Any]]


def newest_keys(journal: PgConnection, pipeline: str, points: Sequence[str]) -> list[PointKeys]:
    """Return how the newest compared window that had each of these points read its key; without those of no window."""
    return records(PointKeys, _run(journal, "newest_keys", pipeline=pipeline, points=points)) if points else []


def names_of_places(journal: PgConnection, pipeline: str, places: Sequence[str]) -> dict[str, str]:
    """Return the place of each point that compared windows knew at one of these places: the newest that it had."""
    rows = _run(journal, "names_of_places", pipeline=pipeline, places=places) if places else []
    return {row.name: row.place for row in rows}
