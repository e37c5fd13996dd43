"""Test that every command says what it does, and every option what it is for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import Result

from makewhole.cli.main import app

pytestmark = pytest.mark.unit


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = list(commands(get_command(app)))


def test_every_command_of_the_design_is_there() -> None:
    assert sorted(" ".join(path) for path, command in ALL if not hasattr(command, "commands")) == [
        "accept",
        "audit",
        "certificate keygen",
        "certificate verify",
        "check",
        "demo",
        "doctor",
        "down",
        "erase",
        "explain",
        "export",
        "findings",
        "index merge",
        "index rebuild",
        "index status",
        "init",
        "keep",
        "migrate",
        "notify",
        "pipelines",
        "plan approve",
        "plan dry-run",
        "plan list",
        "plan pause",
        "plan rate",
        "plan reject",
        "plan resume",
        "plan show",
        "plan stop",
        "plan undo",
        "plan watch",
        "published",
        "run",
        "self-check",
        "status",
        "todo",
        "up",
        "windows",
    ]


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "makewhole" for path, _ in ALL])
def test_help_says_what_a_command_does(invoke: Callable[..., Result], path: tuple[str, ...], command: Any) -> None:
    result = invoke(*path, "--help")
    assert result.exit_code == 0, result.output
    assert command.help is not None
    assert command.help.split()[0] in result.stdout


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "makewhole" for path, _ in ALL])
def test_every_option_and_argument_says_what_it_is_for(path: tuple[str, ...], command: Any) -> None:
    silent = [option.name for option in command.params if not getattr(option, "help", None)]
    assert [name for name in silent if name != "help"] == []


def test_the_help_names_every_exit_code(invoke: Callable[..., Result]) -> None:
    text = " ".join(invoke("--help").stdout.split())
    assert "0 certified, 1 gaps remain, 2 wrong usage or configuration, 3 not known, 4 could not run" in text
