"""Read the windows that were left unfinished, and write which runs go on with them."""

from dataclasses import dataclass
from datetime import datetime

from makewhole.journal.statements import scope
from makewhole.journal.windows import WindowBounds
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, statements_of

_run = statements_of("continuation")

_NEWEST_RUNS = 3


@dataclass(frozen=True, kw_only=True)
class UnfinishedWindow:
    """A window whose newest revision no run has brought to its end.

    `runs` are those that worked on it, the one that opened it first; `askers` those that had it gone on with, in order.
    `is_compared`: some revision of it was compared, so that later windows need not wait for it.
    """

    pipeline: str
    bounds: WindowBounds
    opened_at: datetime
    reason: str | None
    is_compared: bool
    awaits_approval: bool
    runs: tuple[str, ...]
    askers: tuple[str, ...] = ()

    def newest_runs(self) -> tuple[str, ...]:
        """Return the runs that may still be at it, newest first; the one that opened it can have been cleared."""
        return tuple(dict.fromkeys((*reversed(self.runs[-_NEWEST_RUNS:]), self.runs[0])))


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """A run that went on with an unfinished window, and the run that asked for it before its own window."""

    run: str
    asked_by: str
    began_at: datetime


def unfinished(
    journal: PgConnection, pipeline: str, since: datetime, number: int | None = None
) -> list[UnfinishedWindow]:
    """Return the unfinished windows of a pipeline, oldest first. Of those that were compared and whose repair was left,
    only the ones that were opened since a moment, and window `number`."""
    rows = _run(journal, "unfinished", pipeline=pipeline, since=since, number=number)
    return [
        record(
            UnfinishedWindow, row, pipeline=pipeline, bounds=record(WindowBounds, row), runs=(row.request, *row.runs)
        )
        for row in rows
    ]


def put(journal: PgConnection, window: UnfinishedWindow, run: str, asked_by: str) -> None:
    """Write that a run goes on with a window; harmless when it is written already."""
    bounds = window.bounds
    _run(
        journal,
        "insert_continuation",
        pipeline=window.pipeline,
        number=bounds.number,
        revision=bounds.revision,
        attempt=len(window.askers) + 1,
        run=run,
        asked_by=asked_by,
    )


def reopen(journal: PgConnection, window: Window) -> None:
    """Write that the window is being worked on again."""
    _run(journal, "reopen", **scope(window))


def of(journal: PgConnection, window: Window) -> list[Continuation]:
    """Return the runs that went on with this revision, in order."""
    return records(Continuation, _run(journal, "continuations", **scope(window)))
