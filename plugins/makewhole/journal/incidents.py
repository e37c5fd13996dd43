"""Read and write the incidents of the logs that a window reads, with the revision that found them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.statements import scope, statements_of
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import Window
from makewhole.sql import PgConnection

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
    return [_incident(row) for row in _run(journal, "incidents", **scope(window))]


def of_log(journal: PgConnection, window: Window) -> list[tuple[Window, Incident]]:
    """Return the incidents of this revision, and of other windows those by which a log lost records: each with its
    window, without the ranges, oldest first."""
    return [
        (_noticed_by(window, number, revision, times), _incident(row))
        for number, revision, *times, row in (
            (*found[:5], found[5:]) for found in _run(journal, "incidents_of_log", **scope(window))
        )
    ]


def _noticed_by(window: Window, number: int, revision: int, times: Sequence[Any]) -> Window:
    start, end, opened_at = times
    return replace(window, number=number, revision=revision, start=start, end=end, opened_at=opened_at, ranges={})


def _incident(row: Sequence[Any]) -> Incident:
    kind, point, topic, topic_id, partition, lo, hi, detail = row
    return Incident(
        kind=IncidentKind(kind),
        point=point,
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        lo=lo,
        hi=hi,
        detail=detail,
    )
