"""Hold the runbook to the code: its messages are said somewhere, its commands exist, and no state or incident lacks."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import typer

from makewhole.cli.main import app
from makewhole.model.gate import GateAnswer
from makewhole.model.incident import IncidentKind
from makewhole.model.plan import PlanState
from makewhole.model.refusal import RefusalCode
from makewhole.model.window import WindowState

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def sentences(tree: ast.Module) -> str:
    """Return every text of a module but its docstrings, one a line, what is filled in as an ellipsis; that of a refusal
    behind its code, as people get it."""
    texts = []
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = None if id(node) in docstrings else text_of(node)
        if text is not None:
            texts.append(text)
        texts += refusals_in(node)
    return "\n".join(texts)


def text_of(node: ast.AST) -> str | None:
    """Return the text that a string of the code gives; None: it is none."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[sd]", "…", node.value)
    return None


def refusals_in(node: ast.AST) -> Iterator[str]:
    """Yield the texts that follow a member of `RefusalCode` among arguments or in a tuple, each behind its code."""
    parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
    for code, text in pairwise(parts):
        if isinstance(code, ast.Attribute) and isinstance(code.value, ast.Name) and code.value.id == "RefusalCode":
            yield f"{RefusalCode[code.attr]}: {text_of(text)}"


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
    return [line.split() for line in [*blocks, *(" ".join(text.split()) for text in inline)]]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_exists_with_its_options(words: list[str]) -> None:
    command, rest = typer.main.get_command(app), list(words)
    while (below := getattr(command, "commands", None)) is not None:
        command = below[rest.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert [word for word in rest if word.startswith("--") and word not in known] == []
