"""What happened to the logs that a window reads, kept with the revision that found it."""

from collections.abc import Iterable
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.database import Journal, load_queries
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import Window


def put(journal: Journal, window: Window, incidents: Iterable[Incident]) -> None:
    """Keep what was found; found again at the same place, the newer word stays."""
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


def of(journal: Journal, window: Window) -> list[Incident]:
    """The incidents of this revision, by point, partition and offset."""
    names = ("kind", "point", "topic", "topic_id", "partition", "lo", "hi", "detail")
    found = [dict(zip(names, row, strict=True)) for row in _run(journal, "incidents", window)]
    return [Incident(**{**values, "kind": IncidentKind(values["kind"])}) for values in found]


def _run(journal: Journal, statement: str, window: Window, **values: Any) -> list[tuple[Any, ...]]:
    scope = {"pipeline": window.pipeline, "number": window.number, "revision": window.revision}
    with journal.cursor() as cursor:
        cursor.execute(load_queries("incident")[statement], scope | values)
        return cursor.fetchall() if cursor.description else []
