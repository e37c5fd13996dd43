"""Find what can be removed because it was kept long enough, and remove the keys and evidence of findings."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from makewhole.journal import windows
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
    return _removable(journal, pipeline, kind, kept, published_to)


def is_removable(
    journal: PgConnection,
    pipeline: str,
    window: RemovableWindow,
    kind: Kept,
    kept: timedelta,
    published_to: Collection[str],
) -> bool:
    """Return whether this can go of a window still; no revision of one is opened until the transaction ends."""
    windows.lock_pipeline(journal, pipeline)
    return window in _removable(journal, pipeline, kind, kept, published_to, window.number)


def _removable(
    journal: PgConnection,
    pipeline: str,
    kind: Kept,
    kept: timedelta,
    published_to: Collection[str],
    number: int | None = None,
) -> list[RemovableWindow]:
    """Return the windows of which this can go; `number`: of this one alone."""
    values = {"pipeline": pipeline, "kind": kind.value, "kept": kept, "published_to": list(published_to)}
    return records(RemovableWindow, _run(journal, "windows_with_archives", **values, number=number))


def ended_plans(journal: PgConnection, pipeline: str, kind: Kept, kept: timedelta) -> list[EndedPlan]:
    """Return the plans of which this can go, oldest first."""
    return records(EndedPlan, _run(journal, "ended_plans", pipeline=pipeline, kind=kind.value, kept=kept))


def moved_aside(journal: PgConnection, plan: str, targets: Collection[str]) -> int:
    """Return how many actions of a plan, which was not undone, moved rows aside at some targets."""
    return int(single_value(_run(journal, "moved_aside", plan=plan, targets=list(targets))))


def named_texts(journal: PgConnection, pipeline: str, number: int) -> Iterator[str]:
    """Yield the texts of the documents in which the files of a window are named."""
    for (text,) in _run(journal, "texts_of_window", pipeline=pipeline, number=number):
        yield from _texts(json.loads(text))


def texts_of_merge(journal: PgConnection, pipeline: str, attempt: str) -> Iterator[str]:
    """Yield the texts of the document in which the files of a merged run of the key index are named."""
    for (text,) in _run(journal, "texts_of_merge", pipeline=pipeline, attempt=attempt):
        yield from _texts(json.loads(text))


def _texts(document: Any) -> Iterator[str]:
    """Yield every text of a document, names of fields included."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for name, value in document.items():
            yield name
            yield from _texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from _texts(value)


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
