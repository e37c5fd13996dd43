"""Start the demo's backfill through Airflow's REST API, and watch it to its end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.cli.airflow_api import AirflowApi

FINISHED_RUN = frozenset({"success", "failed"})
_POLL_SECONDS = 1.0

TaskChange = Callable[[datetime, str, str, float | None], None]
RunEnd = Callable[[datetime, str, float | None], None]


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """Callbacks for a task's new state (day, task, state, seconds) and for a run's end (day, state, seconds)."""

    task: TaskChange
    run: RunEnd


class Backfill:
    """The backfills of one DAG in one Airflow, over REST."""

    def __init__(self, api: AirflowApi, dag: str) -> None:
        self._api = api
        self._dag = dag

    def backfill(self, first: datetime, last: datetime) -> None:
        """Start one run per interval from `first` to `last` (their beginnings, both included), oldest first.

        Runs of a backfill wait while their DAG is paused. Unpausing starts nothing else: the pipeline's schedule ended
        with its data (`until`).
        """
        body = {
            "dag_id": self._dag,
            "from_date": first.isoformat(),
            "to_date": last.isoformat(),
            "max_active_runs": 1,
            "reprocess_behavior": "none",
        }
        self._api.send("POST", "/backfills", body)
        self._api.send("PATCH", f"/dags/{self._dag}", {"is_paused": False})

    def watch(self, first: datetime, last: datetime, expected: int, watcher: Watcher) -> dict[datetime, str]:
        """Follow the runs until all `expected` have ended; return their states by the beginning of their interval.

        Only the runs that are not over are asked for their tasks, so a year costs no more than a day.
        """
        ended: dict[datetime, str] = {}
        seen: dict[tuple[datetime, str], str | None] = {}
        while len(ended) < expected:
            for run in self._runs(first, last):
                day = datetime.fromisoformat(run["logical_date"])
                if day in ended or run["state"] == "queued":
                    continue
                self._report_tasks(day, run["dag_run_id"], seen, watcher)
                if run["state"] in FINISHED_RUN:
                    ended[day] = run["state"]
                    watcher.run(day, run["state"], run["duration"])
            time.sleep(_POLL_SECONDS)
        return ended

    def _report_tasks(
        self, day: datetime, run_id: str, seen: dict[tuple[datetime, str], str | None], watcher: Watcher
    ) -> None:
        tasks = self._api.get(f"/dags/{self._dag}/dagRuns/{run_id}/taskInstances", limit=100)["task_instances"]
        for task in sorted(tasks, key=lambda task: task["start_date"] or "9999"):
            task_key, state = (day, _name(task)), task["state"]
            if state and seen.get(task_key) != state:
                seen[task_key] = state
                watcher.task(day, _name(task), state, task["duration"])

    def _runs(self, first: datetime, last: datetime) -> list[Mapping[str, Any]]:
        runs: list[Mapping[str, Any]] = []
        while True:
            page = self._api.get(
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


def _name(task: Mapping[str, Any]) -> str:
    index = task["map_index"]
    return str(task["task_id"]) if index < 0 else f"{task['task_id']}[{index}]"
