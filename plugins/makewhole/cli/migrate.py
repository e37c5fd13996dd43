"""Run `makewhole migrate`: bring the schema of the journal up to date, or say what that takes."""

import json as json_format
from typing import Annotated

import typer

from makewhole.cli.environment import AsJson, Exit, chosen_service, console, reporting_errors
from makewhole.journal.database import connect
from makewhole.journal.database import migrate as apply_migrations
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.deployment.schema_version import migration_script, schema_version

_console = console()


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit code 2 where it is not current.")
    ] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Change nothing; print the SQL that is left to apply, for psql.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Bring the journal's schema to the version that this makewhole needs, as the user who owns it.

    Harmless when it is there, and beside other processes that migrate. Every command and every task checks the version
    and refuses to work with another one.
    """
    with reporting_errors():
        if check and sql:
            raise typer.BadParameter("give --check or --sql, not both")
        chosen_service()
        applied = [] if check or sql else apply_migrations(journal_dsn())
        with connect() as journal:
            version = schema_version(journal)
    if sql:
        typer.echo(migration_script(version.pending) if version.pending else f"-- {version.sentence()}")
        return
    if json:
        numbers = {"found": version.found, "needed": version.needed, "is_current": version.is_current}
        typer.echo(json_format.dumps({**numbers, "applied": applied}))
    else:
        for name in applied:
            _console.print(f"applied {name}")
        _console.print(version.sentence())
    if not version.is_current:
        raise typer.Exit(Exit.WRONG_USAGE)
