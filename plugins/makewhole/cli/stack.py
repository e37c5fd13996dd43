"""Run `makewhole up`, `status` and `down`: Kafka, PostgreSQL and Airflow on this machine."""

import json as json_format
import time
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from makewhole.model.errors import MakewholeError
from makewhole.stack import local
from makewhole.stack.local import Health, StackState, stack_state
from makewhole.stack.settings import home_folder

_COULD_NOT_RUN = 4
_COLOURS = {Health.HEALTHY: "green", Health.NOT_ANSWERING: "yellow", Health.DEAD: "red", Health.STOPPED: "dim"}

_console = Console(highlight=False, soft_wrap=True)
_errors = Console(highlight=False, soft_wrap=True, stderr=True)


def up(
    kafka_nodes: Annotated[
        Literal["1", "3"] | None, typer.Option(help="Nodes of a new Kafka; 1 when not given.", show_default=False)
    ] = None,
    new_ports: Annotated[bool, typer.Option("--new-ports", help="Choose other ports than last time.")] = False,
) -> None:
    """Start the local stack and wait until it is healthy. A second time is harmless."""
    home, started = home_folder(), time.monotonic()
    try:
        with _console.status("starting") as status:
            local.up(
                home,
                kafka_nodes=int(kafka_nodes) if kafka_nodes else None,
                new_ports=new_ports,
                report=lambda step: _show(status.update, step, started),
            )
    except MakewholeError as error:
        _fail(error)
    state = stack_state(home)
    _console.print(Text(f"up after {time.monotonic() - started:.0f} s", style="green"))
    _print(state)


def down() -> None:
    """End the local stack. Its data, ports and passwords stay for the next `up`."""
    started = time.monotonic()
    try:
        with _console.status("ending") as status:
            local.down(home_folder(), report=lambda step: _show(status.update, step, started))
    except MakewholeError as error:
        _fail(error)
    _console.print(f"down; the data stay in {home_folder()}")


def status(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Show where each part of the local stack is and how it is. Exit code 0 when all are healthy, 4 when not."""
    try:
        state = stack_state(home_folder())
    except MakewholeError as error:
        _fail(error)
    if json:
        typer.echo(json_format.dumps(document(state)))
    else:
        _print(state)
    if not state.is_up:
        raise typer.Exit(_COULD_NOT_RUN)


def document(state: StackState) -> dict[str, object]:
    """Return what `status --json` prints. Addresses are null when there was never a stack here."""
    health = {
        part.name: {
            "state": part.health.value,
            "pid": part.pid,
            "log": part.log and str(part.log),
            "remedy": part.remedy,
        }
        for part in state.parts
    }
    return {
        "kafka": {"bootstrap": state.bootstrap},
        "postgres": {"dsn": state.dsn},
        "airflow": {"url": state.url, "user": state.user, "password": state.password},
        "storage": str(state.storage),
        "health": health,
    }


def _show(update: object, step: str, started: float) -> None:
    if callable(update):
        update(step)
    if "answers" in step or "waiting" in step:
        _console.print(f"{time.monotonic() - started:5.1f} s  {step}")


def _print(state: StackState) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "state", "pid", "what to do"):
        table.add_column(heading, overflow="fold")
    for part in state.parts:
        colour = _COLOURS[part.health]
        table.add_row(part.name, Text(part.health.value, style=colour), str(part.pid or ""), part.remedy)
    _console.print(table)
    if state.disk_is_scarce:
        _console.print(Text(f"only {state.free_bytes // 1024**2} MiB are free at {state.home}; free some", style="red"))
    if not state.is_up and not state.is_down:
        _console.print("not all of it is up: `makewhole up` completes it, `makewhole down` ends it; no data are lost")
    if state.url:
        _console.print(f"Airflow     {state.url}  user {state.user}, password {state.password}")
        _console.print(f"Kafka       {state.bootstrap}")
        _console.print(f"PostgreSQL  {state.dsn}")


def _fail(error: MakewholeError) -> None:
    _errors.print(Text(str(error), style="red"))
    raise typer.Exit(_COULD_NOT_RUN)


def main() -> None:
    """Run the three commands alone, for `python -m makewhole.cli.stack`."""
    app = typer.Typer(no_args_is_help=True)
    for command in (up, down, status):
        app.command()(command)
    app()


if __name__ == "__main__":
    main()
