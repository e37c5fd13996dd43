"""Provide what every command shares: the service's environment, exit codes, printing, error messages."""

import os
import select
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions
from rich.table import Column, Table
from rich.text import Text

from makewhole.config.connection_text import variable_of
from makewhole.journal.deployment.address import VARIABLE, is_configured, journal_connection
from makewhole.journal.deployment.schema_version import require_current
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem, RefusedError
from makewhole.model.text import printable as printable
from makewhole.model.window import WindowState
from makewhole.orchestration.provider import SECTION
from makewhole.stack.environment import environment
from makewhole.stack.settings import home_folder, load

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]

_OUR_VARIABLES = ("MAKEWHOLE_", "AIRFLOW_CONN_")


class Exit(IntEnum):
    """The exit codes of all commands."""

    CERTIFIED = 0
    GAPS_REMAIN = 1
    WRONG_USAGE = 2
    NOT_KNOWN = 3
    COULD_NOT_RUN = 4
    OPEN_WINDOWS = 5  # of `certificate verify`: the chain is sound, and windows before its end are not certified
    NOTHING_JUDGED = 6  # of `run --keys`: not one of the keys has a verdict, nor a reason why it is not known


_EXIT_BY_STATE = {
    WindowState.CERTIFIED: Exit.CERTIFIED,
    WindowState.GAPS: Exit.GAPS_REMAIN,
    WindowState.NOT_KNOWN: Exit.NOT_KNOWN,
    WindowState.OPEN: Exit.NOT_KNOWN,
    WindowState.ERROR: Exit.COULD_NOT_RUN,
}


_WIDTH_WITHOUT_TERMINAL = 4096  # wider than any row of ours: there, a line is a row, for grep and for logs
_GUTTER, _FOLDED_WIDTH = 2, 8


class _Console(Console):
    """A console that breaks no row of a table where there is no terminal, nor COLUMNS: in a pipe or a log file."""

    @property  # type: ignore[misc]  # it is never set
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        dimensions = super().size
        if self.is_terminal or "COLUMNS" in os.environ:
            return dimensions
        return ConsoleDimensions(_WIDTH_WITHOUT_TERMINAL, dimensions.height)


def console(*, stderr: bool = False) -> Console:
    """Return the console that every command prints to; nothing in a text is taken for markup."""
    return _Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False)


def print_table(out: Console, table: Table) -> None:
    """Print a table; on a terminal that is too narrow for its columns in lines that the terminal breaks.

    Rich would leave columns out, and say nothing.
    """
    least = sum(_least_width(column) for column in table.columns) + _GUTTER * (len(table.columns) - 1)
    if out.width < least:
        table.width = least
    out.print(table)


def _least_width(column: Column) -> int:
    texts = [cell.plain if isinstance(cell, Text) else str(cell) for cell in (column.header, *column.cells)]
    widest = max(cell_len(text) for text in texts)
    return widest if column.no_wrap else min(widest, _FOLDED_WIDTH)


def exit_of(state: WindowState) -> Exit:
    """Return the exit code for a window that ended in a state."""
    return _EXIT_BY_STATE[state]


@contextmanager
def service_environment() -> Iterator[None]:
    """Run a command against the service of the environment, or the local stack where none is configured.

    Our errors become one clear message and an exit code, and so does a journal with another schema than this makewhole
    needs.
    """
    with reporting_errors():
        chosen_service()
        require_current()
        yield


def chosen_service() -> None:
    """Give this process what Airflow's configuration on this machine says of the service, and the environment of the
    local stack where nothing is configured."""
    if _is_in_airflow_configuration():
        from makewhole.orchestration.deployment.settings import export_options

        export_options()
    if not is_configured():
        os.environ.update(_local_stack(home_folder()))


def _is_in_airflow_configuration() -> bool:
    """Return whether Airflow, which takes a second to load, is configured here with a section of ours."""
    if any(name.startswith("AIRFLOW__MAKEWHOLE__") for name in os.environ):
        return True
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    file = Path(os.environ.get("AIRFLOW_CONFIG", home / "airflow.cfg"))
    try:
        return f"[{SECTION}]" in file.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return False


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turn our errors into one clear message and an exit code.

    An unforeseen error is shown whole. Left to Python it would end with the code of gaps that remain.
    """
    try:
        yield
    except (ConfigurationError, RefusedError) as error:
        _fail(error, Exit.WRONG_USAGE)
    except MakewholeError as error:
        _fail(error, Exit.COULD_NOT_RUN)
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except BrokenPipeError:
        if is_reader_gone():
            raise
        traceback.print_exc()
        raise typer.Exit(Exit.COULD_NOT_RUN) from None
    except Exception as error:
        traceback.print_exc()
        raise typer.Exit(Exit.COULD_NOT_RUN) from error


def is_reader_gone() -> bool:
    """Return whether the reader of the standard output is gone."""
    asked = select.poll()
    asked.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in asked.poll(0))


def _local_stack(home: Path) -> dict[str, str]:
    if load(home) is None:
        problem = Problem(
            file="environment",
            path=VARIABLE,
            found=f"is not set, and there is no local stack in {home}",
            remedy="Start one with `makewhole up`, or set it to the journal's PostgreSQL URI of your service, or "
            f"{variable_of(journal_connection())} to its connection",
        )
        raise ConfigurationError([problem])
    return {name: value for name, value in environment(home).items() if name.startswith(_OUR_VARIABLES)}


def _fail(error: MakewholeError, code: Exit) -> None:
    errors = console(stderr=True)
    lines = "\n".join(printable(line) for line in str(error).split("\n"))
    errors.print(Text.assemble(("could not: ", "bold red"), lines))
    raise typer.Exit(code) from error
