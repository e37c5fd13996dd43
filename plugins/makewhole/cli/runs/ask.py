"""Ask where Airflow's tasks run, with the connections that they have and this machine may not."""

from typing import Annotated, Any

import typer
from rich.console import Console

from makewhole.cli.airflow_api import AirflowRefusedError, access, airflow
from makewhole.cli.runs.failed_task import failed_task
from makewhole.cli.runs.follow import follow
from makewhole.cli.runs.paused import require_released
from makewhole.model.errors import PermanentError
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.access import ask_dag_of
from makewhole.orchestration.task_ids import ASK

InAirflow = Annotated[
    bool,
    typer.Option("--in-airflow", help="Ask from a task of Airflow, whose connections this machine need not have."),
]
_FORBIDDEN = 403


def ask_airflow(pipeline: Pipeline, question: str, out: Console) -> dict[str, Any]:
    """Have a task ask about a pipeline; return its answer. `out`: where the run is followed.

    Raises:
        PermanentError: the task failed, whose log says why; or the user may not start it.
        TransientError: Airflow does not answer.
    """
    where, dag = access(), ask_dag_of(pipeline)
    with airflow(where) as api:
        api.wait_for_dag(dag)
        require_released(api, where, dag)
        try:
            run_id = api.trigger(dag, {"pipeline": pipeline.name, "question": question})
        except AirflowRefusedError as error:
            if error.status != _FORBIDDEN:
                raise
            raise PermanentError(
                f"{where.user} may not ask: Airflow does not let them start the DAG {dag}. Have a person ask who may. "
                f"{error}"
            ) from error
        log = where.log_url(dag, run_id, ASK)
        out.print(f"run {run_id}: {log}")
        if follow(api, dag, run_id, out, where) != "success":
            failed = failed_task(api, dag, run_id, ASK)
            why = f": {failed.reason}\nIts log: {log}" if failed else f"; {log} says why"
            raise PermanentError(f"the task that asks did not end well{why}")
        answer: dict[str, Any] = api.get(
            f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{ASK}/xcomEntries/return_value", deserialize="true"
        )["value"]
        return answer
