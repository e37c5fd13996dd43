"""Keep how far the steps are that run now, for those who wait for them."""

from dataclasses import dataclass

from makewhole.journal.step_failures import StepPlace
from makewhole.model.text import duration
from makewhole.sql import PgConnection, record, statements_of

_run = statements_of("step_progress")


@dataclass(frozen=True, kw_only=True)
class StepProgress:
    """How many of the parts of a step's present work are done. `seconds`: since when."""

    step: str
    done: int
    total: int
    seconds: float

    def sentence(self) -> str:
        """Return it for people, with the time that is left as far as that can be seen."""
        return f"{self.done} of {self.total} parts{time_left(self.done, self.total, self.seconds)}"


def time_left(done: int, total: int, seconds: float) -> str:
    """Return how long the rest takes if it goes on like this; nothing while no part is done, or for less than 1 s."""
    left = int(seconds * (total - done) / done) if done else 0
    return f", about {duration(left * 1000)} left" if left else ""


def put(journal: PgConnection, place: StepPlace, done: int, total: int) -> None:
    """Write how far a step is."""
    _run(journal, "put_progress", **vars(place), done=done, total=total)


def forget(journal: PgConnection, place: StepPlace) -> None:
    """Remove what was written of a step."""
    _run(journal, "forget_progress", **vars(place))


def of_run(journal: PgConnection, dag: str, run: str) -> StepProgress | None:
    """Return how far the step is that a run is at; None: it was not written in the last minute."""
    return next((record(StepProgress, row) for row in _run(journal, "progress_of_run", dag=dag, run=run)), None)
