"""Hold each entry of the runbook on tasks, on plans that cannot run and on systems that are away to a test that reaches
it on purpose, most of them on real servers."""

import ast
import re
from functools import cache

import pytest

from tests.unit.docs.reached_tasks import REACHED
from tests.unit.docs.test_runbook import ENTRIES, TEXT, sentences
from tests.unit.docs.test_runbook_reached import TESTS, functions

pytestmark = pytest.mark.unit

SECTIONS = ("Tasks", "A plan cannot run", "A system is away")


def titles() -> list[str]:
    """Return the entries of the sections."""
    parts = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    return [
        title
        for part in parts
        if part.split("\n")[0] in SECTIONS
        for title in re.findall(r"^### (.*)$", part, re.MULTILINE)
    ]


@cache
def texts_of(file: str, function: str) -> str:
    """Return the texts of a function of a test file, and of what stands outside of its functions."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    kept = [node for node in tree.body if not isinstance(node, ast.FunctionDef) or node.name == function]
    return sentences(ast.Module(body=kept, type_ignores=[]))


def test_every_task_and_every_outage_has_a_test_that_reaches_it() -> None:
    assert sorted(REACHED) == sorted(titles())


@pytest.mark.parametrize("title", REACHED)
def test_the_test_that_reaches_it_has_its_symptom(title: str) -> None:
    file, function, symptom = REACHED[title]
    assert function in functions(file)
    if symptom is not None:
        assert symptom in " ".join(ENTRIES[title].split("- **Check**")[0].split())
        assert symptom in texts_of(file, function)
