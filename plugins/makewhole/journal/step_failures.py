"""Keep why a step of a window did not end well, until it does."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg2

from makewhole.journal.statements import scope, storable
from makewhole.model.errors import MakewholeError, PermanentError
from makewhole.model.window import Window
from makewhole.sql import PgConnection, records, statements_of

_run = statements_of("step_failure")

_NO_WINDOW = 0


@dataclass(frozen=True, kw_only=True)
class StepPlace:
    """A step of a revision of a window, in a run of Airflow; `number` and `revision` are 0 where none was opened.
    `is_request`: what the run's form asked for was refused, for which no pipeline stands still."""

    pipeline: str
    step: str
    dag: str
    run: str
    number: int = _NO_WINDOW
    revision: int = _NO_WINDOW
    is_request: bool = False


@dataclass(frozen=True, kw_only=True)
class StepFailure:
    """Why a step did not end well when it was last tried. `is_permanent`: trying again does not help."""

    step: str
    dag: str
    run: str
    is_permanent: bool
    reason: str
    failed_at: datetime

    def sentence(self) -> str:
        """Name the step, the run and the reason."""
        return f"{self.step} did not end well in run {self.run} of {self.dag}: {self.reason.rstrip('.')}"


def put(journal: PgConnection, place: StepPlace, error: BaseException) -> None:
    """Write why a step did not end well; what was written of it before is replaced."""
    is_permanent = isinstance(error, PermanentError) or not isinstance(error, MakewholeError)
    _run(journal, "put", **vars(place), is_permanent=is_permanent, reason=reason_of(error))


def end_tries(journal: PgConnection, place: StepPlace) -> None:
    """Write that a step is not tried again in its run: a person has to act, whatever its reason."""
    _run(journal, "end_tries", **vars(place))


def forget(journal: PgConnection, place: StepPlace) -> None:
    """Remove what was written of a step that has ended well by now."""
    _run(journal, "forget", **vars(place))


def of(journal: PgConnection, window: Window) -> list[StepFailure]:
    """Return the failures of a revision, the newest first."""
    return records(StepFailure, _run(journal, "of_revision", **scope(window)))


def at(journal: PgConnection, place: StepPlace) -> StepFailure | None:
    """Return the failure of a step, whatever the run; None: it ended well, or was not begun."""
    rows = _run(journal, "of_revision", pipeline=place.pipeline, number=place.number, revision=place.revision)
    return next((failure for failure in records(StepFailure, rows) if failure.step == place.step), None)


def reason_of(error: BaseException) -> str:
    """Return why a step broke, for people. Of an error that is not ours no text that may quote data is in it: of
    PostgreSQL's the first line alone, of others the name."""
    if isinstance(error, MakewholeError):
        return storable(str(error))
    if isinstance(error, psycopg2.Error):
        return f"PostgreSQL refused a statement of makewhole's own: {_first_line(error)}"
    return f"an error that was not foreseen ({type(error).__name__}); the log has where. Report it with these lines"


def _first_line(error: psycopg2.Error) -> str:
    primary: Any = error.diag.message_primary
    return storable(primary or type(error).__name__)
