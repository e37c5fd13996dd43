"""Hold the runbook to the code: its messages are said somewhere, its commands exist, and no state or incident lacks."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer

from makewhole.cli.main import app
from makewhole.model.gate import GateAnswer
from makewhole.model.incident import IncidentKind
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def sentences(tree: ast.Module) -> str:
    """Return every text of a module but its docstrings, one a line, what is filled in as an ellipsis."""
    found = []
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.append("".join(str(part) for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(re.sub(r"%[sd]", "…", node.value))
    return "\n".join(found)


@cache
def said() -> str:
    """Return every text of the product's modules."""
    return "\n".join(
        sentences(ast.parse(path.read_text(encoding="utf-8")))
        for folder in ("plugins", "spark")
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


VALUES = "|".join([*WindowState, *PlanState, *GateAnswer, "stopped"])
FILLED_IN = re.compile(rf"…|\. |\b(?:{VALUES})\b")


def messages(entry: str) -> list[str]:
    """Return the pieces of the messages of an entry: what stands between two values that are filled in."""
    symptom = " ".join(entry.split("- **Check**")[0].split())
    quoted = [double or single for double, single in re.findall(r"``(.+?)``|`([^`]+)`", symptom)]
    pieces = [piece.strip(" .,;:()") for message in quoted for piece in FILLED_IN.split(message)]
    return [piece for piece in pieces if " " in piece and not piece.startswith("makewhole ")]


@pytest.mark.parametrize("title", ENTRIES)
def test_an_entry_has_symptom_check_and_fix(title: str) -> None:
    assert re.findall(r"^- \*\*(\w+)\*\* ", ENTRIES[title], re.MULTILINE) == ["Symptom", "Check", "Fix"]


@pytest.mark.parametrize("title", ENTRIES)
def test_every_message_of_a_symptom_is_one_of_the_code(title: str) -> None:
    assert [piece for piece in messages(ENTRIES[title]) if piece not in said()] == []


def test_every_state_and_every_incident_has_an_entry() -> None:
    titles = " ".join(ENTRIES)
    names = [*WindowState, *PlanState, *IncidentKind]
    assert [name.value for name in names if f"`{name.value}`" not in titles] == []


def commands() -> list[list[str]]:
    blocks = re.findall(r"^makewhole (.*?)(?:  +#.*)?$", TEXT, re.MULTILINE)
    inline = re.findall(r"`makewhole ([^`]*)`", TEXT)
    return [line.split() for line in [*blocks, *(" ".join(one.split()) for one in inline)]]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_exists_with_its_options(words: list[str]) -> None:
    command, rest = typer.main.get_command(app), list(words)
    while (below := getattr(command, "commands", None)) is not None:
        command = below[rest.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert [word for word in rest if word.startswith("--") and word not in known] == []
