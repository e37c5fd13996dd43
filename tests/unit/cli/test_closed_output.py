"""Test that a command whose reader goes away ends quietly, as `head` expects of every command."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

FILE = "dags/pipelines/flights.yaml"


def into_a_closed_pipe(*words: str) -> tuple[int, str]:
    """Run Python with these words, its output a pipe that is not read; return its status and what it complains of."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run([sys.executable, *words], stdout=writes, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writes)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [("--help",), ("check", FILE), ("check", "--json", FILE)])
def test_a_command_ends_quietly_with_the_status_of_a_closed_pipe(words: tuple[str, ...]) -> None:
    run = f"import sys; from makewhole.cli.main import main; sys.argv[1:] = {list(words)}; main()"
    assert into_a_closed_pipe("-c", run) == (141, "")


def test_many_lines_that_are_printed_one_by_one_end_quietly() -> None:
    run = (
        "import typer\n"
        "from makewhole.cli import main\n"
        "from makewhole.cli.environment import reporting_errors\n"
        "main.app = typer.Typer()\n"
        "@main.app.command()\n"
        "def lines():\n"
        "    with reporting_errors():\n"
        "        for number in range(100_000):\n"
        "            typer.echo(number)\n"
        "main.main()\n"
    )
    assert into_a_closed_pipe("-c", run) == (141, "")


def test_a_connection_that_breaks_is_still_an_error() -> None:
    run = (
        "import typer\n"
        "from makewhole.cli import main\n"
        "from makewhole.cli.environment import reporting_errors\n"
        "main.app = typer.Typer()\n"
        "@main.app.command()\n"
        "def breaks():\n"
        "    with reporting_errors():\n"
        "        raise BrokenPipeError('the server went away')\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert (done.returncode, "the server went away" in done.stderr) == (4, True)
