"""Use the service as a person does: by its commands, Airflow over REST as several users, and plain SQL in the
journal."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import httpx

from makewhole.cli.documents import window_document
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.stack.environment import environment
from makewhole.stack.settings import load
from tests.world.sql import Rows, run_sql

ONCALL, ACCEPT = "makewhole_oncall", "makewhole_accept"
ENDED = ("success", "failed")
RUN_SECONDS = 600.0
_POLL_SECONDS, _RARELY_SECONDS = 1.0, 3.0
_LOG_LINES = 25

# Two runs share two cores here, and their jobs are over before a second worker pays. Every DAG file is there from the
# beginning: to read all of them again and again takes a third of a core, a scheduler that never rests a sixth.
_SMALL = {
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1.5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "900",
    "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
        {"conn_type": "spark", "host": "local[1]", "extra": {"deploy-mode": "client"}}
    ),
}

Found = TypeVar("Found")


def until(
    look: Callable[[], Found | None], seconds: float, what: Callable[[], object], every: float = _POLL_SECONDS
) -> Found:
    """Look again and again until something is there; return it. `what` names it for the message when it does not
    come. `every`: seconds between two looks."""
    deadline = time.monotonic() + seconds
    while (answer := look()) is None:
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what()}"
        time.sleep(every)
    return answer


@dataclass(frozen=True, kw_only=True)
class Run:
    """A DAG run."""

    dag: str
    id: str

    @property
    def path(self) -> str:
        return f"/dags/{self.dag}/dagRuns/{self.id}"


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The exit code of a command, and the object that it printed."""

    code: int
    document: Mapping[str, Any]


class Stage:
    """The stack in a home of its own. `home` and `pipelines` are folders. `at_once` scenarios have a place on it."""

    def __init__(self, home: Path, pipelines: Path, at_once: int) -> None:
        self.home = home
        self.places = threading.Semaphore(at_once)
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MAKEWHOLE_", "AIRFLOW_", "PYTEST_", "POLARS_"))
        }
        self.variables |= {"MAKEWHOLE_HOME": str(home), "MAKEWHOLE_PIPELINES": str(pipelines)} | _SMALL

    def command(
        self, *arguments: str, user: str | None = None, has_token: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """`makewhole …`; `user` is the name that Airflow is given, with a password, or with a token alone."""
        variables = dict(self.variables)
        if user is not None:
            variables["MAKEWHOLE_AIRFLOW_URL"] = self.status["airflow"]["url"]
            if has_token:
                variables["MAKEWHOLE_AIRFLOW_TOKEN"] = self.client(user).headers["Authorization"].split()[1]
            else:
                password = self._password(user)
                variables |= {"MAKEWHOLE_AIRFLOW_USER": user, "MAKEWHOLE_AIRFLOW_PASSWORD": password}
        program = str(Path(sys.executable).parent / "makewhole")
        return subprocess.run(
            [program, *arguments], env=variables, capture_output=True, text=True, timeout=RUN_SECONDS + 60
        )

    def run_command(self, *arguments: str) -> CommandResult:
        """A command with `--json` that prints one object."""
        done = self.command(*arguments)
        assert done.stdout.startswith("{"), done.stdout + done.stderr
        return CommandResult(code=done.returncode, document=json.loads(done.stdout))

    @property
    def status(self) -> dict[str, Any]:
        """`makewhole status --json`."""
        if not hasattr(self, "_status"):
            self._status: dict[str, Any] = json.loads(self.command("status", "--json").stdout)
        return self._status

    def _password(self, user: str) -> str:
        settings = load(self.home)
        assert settings is not None
        return settings.passwords[user]

    @cache  # noqa: B019 - one stage a session
    def client(self, user: str = "admin") -> httpx.Client:
        """Logged in, for paths below `/api/v2`. httpx clients may be shared by threads."""
        url = self.status["airflow"]["url"]
        credentials = {"username": user, "password": self._password(user)}
        login = httpx.post(f"{url}/auth/token", json=credentials, trust_env=False, timeout=30).raise_for_status()
        headers = {"Authorization": f"Bearer {login.json()['access_token']}"}
        return httpx.Client(base_url=f"{url}/api/v2", headers=headers, trust_env=False, timeout=60)

    def get(self, path: str, **parameters: str | int) -> Any:
        """The JSON of a GET."""
        return self.client().get(path, params=parameters).raise_for_status().json()

    def result_of(self, run: Run, task: str) -> Mapping[str, Any]:
        """The result of a task of a run."""
        returned: Mapping[str, Any] = self.get(
            f"{run.path}/taskInstances/{task}/xcomEntries/return_value", deserialize="true"
        )["value"]
        return returned

    def journal(self, statement: str, *parameters: Any) -> Rows:
        """Run plain SQL in the journal."""
        return run_sql(environment(self.home)["MAKEWHOLE_JOURNAL_DSN"], statement, *parameters)

    # Runs

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the place to another scenario, for a wait in which no run of this one computes anything."""
        self.places.release()
        try:
            yield
        finally:
            self.places.acquire()

    def wait_for_dag(self, dag: str) -> None:
        """Until Airflow has parsed its file."""
        until(
            lambda: True if self.client().get(f"/dags/{dag}").is_success else None,
            300,
            lambda: f"the DAG {dag}; import errors: {self.get('/importErrors')['import_errors']}",
        )

    def ask(self, form: Mapping[str, Any], dag: str = ONCALL, **body: Any) -> httpx.Response:
        """The on-call form over REST, with `logical_date` null unless `body` says otherwise."""
        return self.client().post(f"/dags/{dag}/dagRuns", json={"logical_date": None, **body, "conf": dict(form)})

    def begin(self, pipeline: str, **form: Any) -> Run:
        """A run of the on-call DAG of a pipeline, once Airflow has parsed its file."""
        dag = self.oncall_of(pipeline)
        self.wait_for_dag(dag)
        answer = self.ask({"pipeline": pipeline, **form}, dag)
        assert answer.is_success, answer.text
        return Run(dag=dag, id=answer.json()["dag_run_id"])

    def oncall_of(self, pipeline: str) -> str:
        """The DAG with the on-call form of a pipeline: its own, where its file says who may run it."""
        file = Path(self.variables["MAKEWHOLE_PIPELINES"], f"{pipeline}.yaml")
        is_guarded = file.exists() and "\naccess:" in file.read_text(encoding="utf-8")
        return f"{ONCALL}_{pipeline}" if is_guarded else ONCALL

    def unpause(self, dag: str) -> None:
        """Allow its runs to begin."""
        self.client().patch(f"/dags/{dag}", json={"is_paused": False}).raise_for_status()

    def state(self, run: Run) -> str:
        """Airflow's word on a run."""
        return str(self.get(run.path)["state"])

    def ended(self, run: Run, expected: str) -> dict[str, str]:
        """Wait for the end, which is as expected, or report the logs; the states of its tasks."""
        until(partial(self._has_ended, run), RUN_SECONDS, lambda: self.story(run), every=_RARELY_SECONDS)
        assert self.state(run) == expected, self.story(run)
        return self.tasks(run)

    def _has_ended(self, run: Run) -> bool | None:
        return True if self.state(run) in ENDED else None

    def tasks(self, run: Run) -> dict[str, str]:
        """The state of every task."""
        return {task["task_id"]: task["state"] for task in self._instances(run)}

    def _instances(self, run: Run) -> list[dict[str, Any]]:
        return list(self.get(f"{run.path}/taskInstances", limit=100)["task_instances"])

    def wait_for_task(self, run: Run, task: str, state: str) -> None:
        """Until the task has this state; an end of the run before that fails."""

        def look() -> bool | None:
            if self.tasks(run)[task] == state:
                return True
            assert self.state(run) not in ENDED, self.story(run)
            return None

        until(look, RUN_SECONDS, lambda: f"{task} in state {state}: {self.story(run)}")

    def wait_for_question(self, run: Run) -> None:
        """Until a person can answer the approval of a run.

        Until the scheduler has seen the asking process end, it can take a task that an answer resumed for one that
        died: it is tried again then, and asks again.
        """
        self.wait_for_task(run, "approve", "awaiting_input")
        ended = re.compile(rf"TaskInstance Finished: .*task_id=approve, run_id={re.escape(run.id)}[, ]")
        scheduler_log = self.home / "airflow" / "scheduler.log"
        until(
            lambda: True if ended.search(scheduler_log.read_text(errors="replace")) else None,
            300,
            lambda: f"the end of the asking process in {scheduler_log}: {self.story(run)}",
        )

    def log(self, run: Run, task: str) -> str:
        """The log of the last try."""
        number = self.get(f"{run.path}/taskInstances/{task}")["try_number"]
        answer = self.client().get(
            f"{run.path}/taskInstances/{task}/logs/{max(number, 1)}", headers={"Accept": "application/json"}
        )
        content = answer.json().get("content", []) if answer.is_success else []
        return "\n".join(_line(entry) for entry in content if _line(entry))

    def story(self, run: Run) -> str:
        """Return what became of a run, with the ends of the logs of what failed, waits, or was tried again."""
        instances = self._instances(run)
        states = {task["task_id"]: task["state"] for task in instances}
        tries = {task["task_id"]: task["try_number"] for task in instances}
        tails = [
            f"--- {task}\n" + "\n".join(self.log(run, task).splitlines()[-_LOG_LINES:])
            for task, state in states.items()
            if state in ("failed", "up_for_retry", "awaiting_input") or tries[task] > 1
        ]
        return "\n".join([f"{run.id}: {self.state(run)}, {states}, tries {tries}", *tails])

    # Answers

    def answer(self, run: Run, option: str, user: str) -> httpx.Response:
        """Answer the approval of a run, as the page does."""
        return self.client(user).patch(
            f"{run.path}/taskInstances/approve/-1/hitlDetails", json={"chosen_options": [option], "params_input": {}}
        )

    # The journal

    def window_of(self, run: Run) -> dict[str, Any]:
        """The revision that a run opened, as `--json` prints it."""
        request = "select pipeline, number, revision from makewhole.window where request = %s"
        place = self.journal(request, run.id)
        assert place, f"{run.id} opened no window\n{self.story(run)}"
        with connect(environment(self.home)["MAKEWHOLE_JOURNAL_DSN"]) as journal:
            return window_document(journal, windows.load(journal, *place[0]))


def _line(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    details = " ".join(
        f"{error.get('exc_type')}: {error.get('exc_value')}" for error in entry.get("error_detail") or []
    )
    return f"{entry.get('event', '')} {details}".strip()


def utc(moment: datetime) -> str:
    """As the form and the command line take it."""
    return moment.astimezone(UTC).isoformat()
