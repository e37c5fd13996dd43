"""The demo's side of Airflow's REST API: a backfill over the days, watched to its end."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from makewhole.model.errors import TransientError

FINISHED_RUN = frozenset({"success", "failed"})
_WAIT_FOR_DAG_SECONDS = 120.0
_POLL_SECONDS = 1.0
_HELD_BACK = "Never ran: the demo replays days of 2013, and holds back the intervals that would start in between."

TaskChange = Callable[[datetime, str, str, float | None], None]
RunEnd = Callable[[datetime, str, float | None], None]


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """Who is told: of a task's new state (day, task, state, seconds), and of a run's end (day, state, seconds)."""

    task: TaskChange
    run: RunEnd


class Airflow:
    """One DAG in one Airflow, over REST."""

    def __init__(self, client: httpx.Client, dag: str) -> None:
        self._client = client
        self._dag = dag

    def wait_for_dag(self) -> None:
        """Until the DAG is there.

        Raises:
            TransientError: it did not appear; Airflow's import errors are in the message.
        """
        deadline = time.monotonic() + _WAIT_FOR_DAG_SECONDS
        while self._client.get(f"/dags/{self._dag}").status_code != httpx.codes.OK:
            if time.monotonic() > deadline:
                errors = [error["stack_trace"] for error in self._get("/importErrors")["import_errors"]]
                raise TransientError(
                    f"Airflow does not show the DAG {self._dag}; look at `makewhole status`, and at its import errors: "
                    f"{errors or 'none'}"
                )
            time.sleep(_POLL_SECONDS)

    def backfill(self, first: datetime, last: datetime) -> None:
        """Start one run per interval from `first` to `last` (their beginnings, both included), oldest first.

        Runs of a backfill wait while their DAG is paused. Unpausing it starts the newest interval at once, ahead of
        them, and the one after it when its time comes: a window that would take in all days. So both get a run that is
        over before it began, and Airflow makes no second run for the same interval.
        """
        self._pause(is_paused=True)
        if self._next() is not None:
            self._hold_back_newest()
            self._hold_back_coming()
        self._post_backfill(first, last)
        self._pause(is_paused=False)

    def _next(self) -> Mapping[str, datetime] | None:
        """The interval that the schedule would run next, and when; None when there is none."""
        dag = self._get(f"/dags/{self._dag}")
        names = ("logical_date", "data_interval_start", "data_interval_end", "run_after")
        moments = {name: dag[f"next_dagrun_{name}"] for name in names}
        return None if None in moments.values() else {n: datetime.fromisoformat(at) for n, at in moments.items()}

    def _hold_back_newest(self) -> None:
        """A backfill of the newest complete interval, cancelled while its run waits: that counts as scheduled."""
        newest = self._next()
        if newest is None or newest["run_after"] > datetime.now(UTC):
            return
        moment = newest["logical_date"]
        backfill = self._post_backfill(moment, moment)
        self._send("PUT", f"/backfills/{backfill['id']}/cancel")
        for run in self._runs(moment, moment):
            self._end(run["dag_run_id"])
        self._wait_for_next_after(moment)

    def _hold_back_coming(self) -> None:
        """The interval that ends next cannot be backfilled yet: a run by hand stands in for it."""
        coming = self._next()
        if coming is None:
            return
        body = {name: coming[name].isoformat() for name in ("logical_date", "data_interval_start", "data_interval_end")}
        self._end(self._send("POST", f"/dags/{self._dag}/dagRuns", body)["dag_run_id"])

    def _end(self, run_id: str) -> None:
        self._send("PATCH", f"/dags/{self._dag}/dagRuns/{run_id}", {"state": "failed", "note": _HELD_BACK})

    def _wait_for_next_after(self, moment: datetime) -> None:
        """The DAG processor moves a DAG's next interval on when it parses the file again."""
        deadline = time.monotonic() + _WAIT_FOR_DAG_SECONDS
        while (coming := self._next()) and coming["logical_date"] <= moment:
            if time.monotonic() > deadline:
                raise TransientError(f"Airflow does not move the next interval of {self._dag} on; is its processor up?")
            time.sleep(_POLL_SECONDS)

    def _post_backfill(self, first: datetime, last: datetime) -> Mapping[str, Any]:
        body = {
            "dag_id": self._dag,
            "from_date": first.isoformat(),
            "to_date": last.isoformat(),
            "max_active_runs": 1,
            "reprocess_behavior": "none",
        }
        created: Mapping[str, Any] = self._send("POST", "/backfills", body)
        return created

    def watch(self, first: datetime, last: datetime, expected: int, watcher: Watcher) -> dict[datetime, str]:
        """Follow the runs until all `expected` have ended; their states by the beginning of their interval.

        Only the runs that are not over are asked for their tasks, so a year costs no more than a day.
        """
        ended: dict[datetime, str] = {}
        seen: dict[tuple[datetime, str], str | None] = {}
        while len(ended) < expected:
            for run in self._runs(first, last):
                day = datetime.fromisoformat(run["logical_date"])
                if day in ended or run["state"] == "queued":
                    continue
                self._tell_tasks(day, run["dag_run_id"], seen, watcher)
                if run["state"] in FINISHED_RUN:
                    ended[day] = run["state"]
                    watcher.run(day, run["state"], run["duration"])
            time.sleep(_POLL_SECONDS)
        return ended

    def _tell_tasks(
        self, day: datetime, run_id: str, seen: dict[tuple[datetime, str], str | None], watcher: Watcher
    ) -> None:
        tasks = self._get(f"/dags/{self._dag}/dagRuns/{run_id}/taskInstances", limit=100)["task_instances"]
        for task in sorted(tasks, key=lambda task: task["start_date"] or "9999"):
            place, state = (day, _name(task)), task["state"]
            if state and seen.get(place) != state:
                seen[place] = state
                watcher.task(day, _name(task), state, task["duration"])

    def _runs(self, first: datetime, last: datetime) -> list[Mapping[str, Any]]:
        runs: list[Mapping[str, Any]] = []
        while True:
            page = self._get(
                f"/dags/{self._dag}/dagRuns",
                logical_date_gte=first.isoformat(),
                logical_date_lte=last.isoformat(),
                order_by="logical_date",
                limit=100,
                offset=len(runs),
            )
            runs += page["dag_runs"]
            if len(runs) >= page["total_entries"] or not page["dag_runs"]:
                return runs

    def _pause(self, *, is_paused: bool) -> None:
        self._send("PATCH", f"/dags/{self._dag}", {"is_paused": is_paused})

    def _get(self, path: str, **query: str | int) -> Any:
        return _read(self._client.get(path, params=query))

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return _read(self._client.request(method, path, json=body))


@contextmanager
def airflow(url: str, user: str, password: str, dag: str) -> Iterator[Airflow]:
    """Log in, and give the DAG.

    Raises:
        TransientError: Airflow does not answer, or refuses.
    """
    try:
        login = httpx.post(f"{url}/auth/token", json={"username": user, "password": password}, timeout=30)
        token = _read(login)["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{url}/api/v2", headers=headers, timeout=60) as client:
            yield Airflow(client, dag)
    except httpx.HTTPError as error:
        raise TransientError(f"Airflow at {url} does not answer; look at `makewhole status`") from error


def _read(response: httpx.Response) -> Any:
    if response.is_error:
        request = response.request
        raise TransientError(
            f"Airflow answered {response.status_code} to {request.method} {request.url.path}: {response.text[:500]}"
        )
    return response.json()


def _name(task: Mapping[str, Any]) -> str:
    index = task["map_index"]
    return str(task["task_id"]) if index < 0 else f"{task['task_id']}[{index}]"
