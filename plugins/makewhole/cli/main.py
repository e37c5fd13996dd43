"""List the commands of `makewhole …`; each is imported when it is called."""

import typer

from makewhole.cli.lazy_group import lazy_group

_COMMANDS = {
    "up": "stack:up",
    "status": "stack:status",
    "down": "stack:down",
    "demo": "demo.command:demo",
    "audit": "audit.command:audit",
    "check": "check:check",
    "run": "run:run",
    "windows": "report:windows",
    "findings": "findings:findings",
    "explain": "explain:explain",
    "index": "index:index_app",
    "plan": "plan.command:plan_app",
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
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
)


@app.callback()
def _makewhole() -> None:
    pass
