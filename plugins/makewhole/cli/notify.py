"""Run `makewhole notify`: send a test through every channel of a pipeline, from where Airflow's tasks run."""

import json as json_format
from typing import Annotated

import typer

from makewhole.cli.airflow_api import access, airflow
from makewhole.cli.environment import Exit, console, service_environment
from makewhole.cli.runs.follow import follow
from makewhole.cli.runs.paused import require_released
from makewhole.orchestration.task_ids import NOTIFY, NOTIFY_DAG

_console = console()
_errors = console(stderr=True)


def notify(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Send a message that says that it is a test through every channel of a pipeline (`notify` in its file).

    A task of Airflow sends it, with the connections and packages that real messages are sent with. Exit code 0: every
    channel took it; 4: one did not, and the log of the task, whose address is printed, says why.
    """
    out = _errors if json else _console
    with service_environment():
        where = access()
        with airflow(where) as api:
            api.wait_for_dag(NOTIFY_DAG)
            require_released(api, where, NOTIFY_DAG)
            run_id = api.trigger(NOTIFY_DAG, {"test": pipeline})
            log = where.log_url(NOTIFY_DAG, run_id, NOTIFY)
            out.print(f"run {run_id}: {log}")
            is_sent = follow(api, NOTIFY_DAG, run_id, out, where) == "success"
    if json:
        typer.echo(json_format.dumps({"pipeline": pipeline, "run": run_id, "is_sent": is_sent, "log": log}))
    else:
        out.print(f"{pipeline}: every channel took the test" if is_sent else f"{pipeline}: not sent; {log} says why")
    if not is_sent:
        raise typer.Exit(Exit.COULD_NOT_RUN)
