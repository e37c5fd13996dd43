"""Follow a run of Airflow to its end and print each change of a task's state."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import Access, AirflowApi, AirflowAwayError, AirflowRefusedError
from makewhole.cli.plan.open_questions import acceptance_of_run, plan_of_run
from makewhole.journal.database import connect
from makewhole.journal.results import step_progress
from makewhole.model.errors import MakewholeError, PermanentError, TransientError
from makewhole.orchestration.task_ids import PUBLISH, SPARK_STEPS

_ENDED = ("success", "failed")
_POLL_SECONDS = 1.0
_SECONDS_OF_PROGRESS = 3.0
_WATCHED = (*SPARK_STEPS, PUBLISH)
_AWAY_SECONDS = 600.0  # longer than an API server takes to be started again, or moved to another machine


def follow(api: AirflowApi, dag: str, run_id: str, out: Console, where: Access) -> str:
    """Poll until the run has ended; return its state. A run goes on while its API server is started again, and so does
    this.

    Raises:
        TransientError: Airflow has not answered for ten minutes.
        PermanentError: it does not take the token any more, or what answers is no Airflow any more.
    """
    goes_on = (
        f"Run {run_id} goes on without this command: {where.run_url(dag, run_id)}, or `makewhole windows`, says how it "
        "ended"
    )
    followed = _FollowedRun(api, dag, run_id, out, where)
    with out.status("starting") as status:
        away_since: float | None = None
        while True:
            try:
                if state := followed.look(status.update):
                    return state
                away_since = None
            except PermanentError as error:
                raise PermanentError(f"{error}\n{goes_on}") from error
            except (AirflowAwayError, AirflowRefusedError) as error:
                if isinstance(error, AirflowRefusedError) and not httpx.codes.is_server_error(error.status):
                    raise
                if away_since is None:
                    out.print("Airflow does not answer; the run goes on without it, and this waits")
                    away_since = time.monotonic()
                if time.monotonic() - away_since > _AWAY_SECONDS:
                    raise TransientError(
                        f"Airflow has not answered for {_AWAY_SECONDS / 60:.0f} min. {goes_on}"
                    ) from error
            time.sleep(_POLL_SECONDS)


class _FollowedRun:
    """A run, and what was printed of it so far."""

    def __init__(self, api: AirflowApi, dag: str, run_id: str, out: Console, where: Access) -> None:
        self._api, self._dag, self._run_id, self._out, self._where = api, dag, run_id, out, where
        self._seen: dict[str, str] = {}
        self._asked_tries: set[int] = set()
        self._asks_again_at, self._known_progress = 0.0, ""

    def look(self, update: Callable[[str], None]) -> str | None:
        """Print what has changed since the last look; return the state in which the run has ended, None before.
        Harmless to do again when Airflow stopped answering in the middle."""
        path = f"/dags/{self._dag}/dagRuns/{self._run_id}"
        tasks = self._api.get(f"{path}/taskInstances", limit=100)["task_instances"]
        for task in sorted(tasks, key=lambda task: task["start_date"] or "9999"):
            _print_change(task, self._seen, self._out, update)
            if task["state"] == "running" and task["task_id"] in _WATCHED:
                update(f"{task['task_id']}: running{self._progress()}")
            if task["state"] == "awaiting_input" and task["try_number"] not in self._asked_tries:
                self._print_question()
                self._asked_tries.add(task["try_number"])
        state = str(self._api.get(path)["state"])
        return state if state in _ENDED else None

    def _progress(self) -> str:
        """Return how far the step is that the run is at, where this machine reaches the journal: asked as often as it
        is written there."""
        if time.monotonic() >= self._asks_again_at:
            self._asks_again_at = time.monotonic() + _SECONDS_OF_PROGRESS
            progress = None
            with suppress(MakewholeError), connect() as journal:
                progress = step_progress.of_run(journal, self._dag, self._run_id)
            self._known_progress = "" if progress is None else f", {progress.sentence()}"
        return self._known_progress

    def _print_question(self) -> None:
        """Print what waits for a person, and the command to answer it."""
        plan = plan_of_run(self._api, self._dag, self._run_id)
        acceptance = acceptance_of_run(self._api, self._dag, self._run_id)
        self._out.print(f"waits for a person: {self._where.run_url(self._dag, self._run_id)}/required_actions")
        if plan:
            self._out.print(f"look: makewhole plan dry-run {plan}; answer: makewhole plan approve {plan}, or reject")
        if acceptance:
            self._out.print(f"another person answers: makewhole accept --approve {acceptance}, or --reject")


def _print_change(task: dict[str, Any], seen: dict[str, str], out: Console, update: Callable[[str], None]) -> None:
    name, state = task["task_id"], task["state"]
    if state is None or seen.get(name) == state:
        return
    seen[name] = state
    update(f"{name}: {state}")
    if state in ("success", "failed", "awaiting_input", "up_for_retry"):
        took = f" {task['duration']:.1f} s" if task["duration"] else ""
        colour = {"success": "green", "failed": "red"}.get(state, "yellow")
        out.print(Text.assemble(f"  {name}: ", (state, colour), took))
