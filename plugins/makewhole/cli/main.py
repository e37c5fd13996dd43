"""List the commands of `makewhole …`; each is imported when it is called."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from makewhole.cli.lazy_group import lazy_group

_COMMANDS = {
    "up": "stack:up",
    "status": "stack:status",
    "down": "stack:down",
    "demo": "demo.command:demo",
    "audit": "audit.command:audit",
    "check": "check.command:check",
    "init": "init.command:init",
    "migrate": "migrate:migrate",
    "run": "runs.run:run",
    "todo": "todo:todo",
    "pipelines": "pipelines:pipelines",
    "notify": "notify:notify",
    "windows": "report:windows",
    "findings": "findings:findings",
    "explain": "explain:explain",
    "doctor": "doctor.command:doctor",
    "self-check": "check.self_check:self_check",
    "index": "index:index_app",
    "keep": "keep:keep",
    "erase": "erase:erase",
    "export": "export:export",
    "plan": "plan.command:plan_app",
    "accept": "accept:accept",
    "published": "published:published",
    "certificate": "certificate:certificate_app",
}

app = typer.Typer(
    name="makewhole",
    cls=lazy_group({name: f"makewhole.cli.{place}" for name, place in _COMMANDS.items()}),
    help=(
        "Finds what a Kafka pipeline lost, repeated or changed on the way to its stores, "
        "and makes the stores whole again.\n\n"
        "Exit codes: 0 certified, 1 gaps remain, 2 wrong usage or configuration, 3 not known, 4 could not run."
    ),
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"makewhole {version('makewhole')}")
        raise typer.Exit


@app.callback()
def _makewhole(
    show_version: Annotated[  # noqa: ARG001 - its callback has acted on it
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Call Airflow with the token in this file. Without it: MAKEWHOLE_AIRFLOW_TOKEN (the token, or "
            "file:PATH), then user and password.",
            show_default=False,
        ),
    ] = None,
) -> None:
    if token_file is not None:
        os.environ["MAKEWHOLE_AIRFLOW_TOKEN"] = f"file:{token_file}"


_ENDED_BY_A_CLOSED_PIPE = 128 + 13
"""The status of a command that SIGPIPE ends, as shells report it."""


def main() -> None:
    """Run the command line. Where the reader of its output goes away (`makewhole findings … | head`) it ends quietly,
    with the status of the shell's own commands: that of an error would be taken for gaps."""
    try:
        app()
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
    except BrokenPipeError:
        pass
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the end
    raise SystemExit(_ENDED_BY_A_CLOSED_PIPE)
