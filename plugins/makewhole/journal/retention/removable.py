"""Find what can be removed because it was kept long enough, and remove the keys and evidence of findings."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from makewhole.model.retention import Kept
from makewhole.sql import PgConnection, records, single_value, statements_of

_run = statements_of("removal")

FORGOTTEN = "(removed)"
"""Stands in a finding in the place of its key."""


@dataclass(frozen=True, kw_only=True)
class RemovableWindow:
    """A window of which something can go: all of its revisions up to this one."""

    number: int
    revision: int


@dataclass(frozen=True, kw_only=True)
class EndedPlan:
    """A plan of which nothing more is asked, with the targets that have receipts of it."""

    id: str
    number: int
    revision: int
    payload_uri: str | None
    targets: tuple[str, ...]


def removable_windows(
    journal: PgConnection, pipeline: str, kind: Kept, kept: timedelta, published_to: Collection[str]
) -> list[RemovableWindow]:
    """Return the windows of which this can go, oldest first: certified, over for longer than it is kept, with nothing
    that waits for them. `published_to`: the folders into which the pipeline publishes."""
    values = {"pipeline": pipeline, "kind": kind.value, "kept": kept, "published_to": list(published_to)}
    rows = _run(journal, "windows_with_archives", **values)
    return records(RemovableWindow, rows)


def ended_plans(journal: PgConnection, pipeline: str, kind: Kept, kept: timedelta) -> list[EndedPlan]:
    """Return the plans of which this can go, oldest first."""
    return records(EndedPlan, _run(journal, "ended_plans", pipeline=pipeline, kind=kind.value, kept=kept))


def named_texts(journal: PgConnection, pipeline: str, number: int) -> Iterator[object]:
    """Yield the documents (JSON) in which the files of a window are named."""
    for (text,) in _run(journal, "texts_of_window", pipeline=pipeline, number=number):
        yield json.loads(text)


def count_findings(journal: PgConnection, pipeline: str, window: RemovableWindow) -> int:
    """Return how many findings of a window would lose their keys and evidence."""
    return int(single_value(_run(journal, "count_findings", pipeline=pipeline, marker=FORGOTTEN, **asdict(window))))


def forget_findings(journal: PgConnection, pipeline: str, window: RemovableWindow, because: str) -> int:
    """Remove the keys and the evidence of the findings of a window; what disputes a value keeps them. Returns how many
    there were."""
    count = count_findings(journal, pipeline, window)
    values: Mapping[str, object] = {"pipeline": pipeline, "marker": FORGOTTEN, "because": because, **asdict(window)}
    _run(journal, "forget_findings", **values)
    return count
