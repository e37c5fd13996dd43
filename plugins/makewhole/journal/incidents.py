"""Read and write the incidents of the logs that a window reads, with the revision that found them."""

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg2.extras import Json

from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import Window
from makewhole.sql import PgConnection, load_queries


def put(journal: PgConnection, window: Window, incidents: Iterable[Incident]) -> None:
    """Write incidents; one that is found again at the same place is replaced."""
    for incident in incidents:
        _run(
            journal,
            "put_incident",
            window,
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
    return [_incident(row) for row in _run(journal, "incidents", window)]


def of_pipeline(journal: PgConnection, pipeline: str) -> list[tuple[tuple[int, int], Incident]]:
    """Return the incidents of every revision of every window, each with (number, revision), oldest first."""
    with journal.cursor() as cursor:
        cursor.execute(load_queries("incident")["incidents_of_pipeline"], {"pipeline": pipeline})
        return [((row[0], row[1]), _incident(row[2:])) for row in cursor.fetchall()]


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


def _run(journal: PgConnection, statement: str, window: Window, **values: Any) -> list[tuple[Any, ...]]:
    scope = {"pipeline": window.pipeline, "number": window.number, "revision": window.revision}
    with journal.cursor() as cursor:
        cursor.execute(load_queries("incident")[statement], scope | values)
        return cursor.fetchall() if cursor.description else []
