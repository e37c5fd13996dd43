"""Read and write the incidents of the logs that a window reads, with the revision that found them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.incident import Incident
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, statements_of

_run = statements_of("incident")


def put(journal: PgConnection, window: Window, incidents: Iterable[Incident]) -> None:
    """Write incidents; one that is found again at the same place is replaced."""
    for incident in incidents:
        _run(
            journal,
            "put_incident",
            **scope(window),
            kind=incident.kind.value,
            point=incident.point,
            topic=incident.topic,
            topic_id=incident.topic_id,
            partition=incident.partition,
            lo=incident.lo,
            hi=incident.hi,
            detail=Json(dict(incident.detail)),
        )


def of(journal: PgConnection, window: Window) -> list[Incident]:
    """Return the incidents of this revision, by point, partition and offset."""
    return records(Incident, _run(journal, "incidents", **scope(window)))


def of_log(journal: PgConnection, window: Window) -> list[tuple[Window, Incident]]:
    """Return the incidents of this revision, and of other windows those by which a log lost records: each with its
    window, without the ranges, oldest first."""
    return [
        (_noticed_by(window, row), record(Incident, row)) for row in _run(journal, "incidents_of_log", **scope(window))
    ]


def _noticed_by(window: Window, row: Any) -> Window:
    noticed = {name: getattr(row, name) for name in ("number", "revision", "start", "end", "opened_at")}
    return replace(window, ranges={}, **noticed)
