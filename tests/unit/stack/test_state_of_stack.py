"""Test that to ask about a local stack is no reason to fetch what only its servers need."""

from pathlib import Path

import pytest

from makewhole.stack.local import Health, stack_state
from makewhole.stack.maven_jars import JarFolder

pytestmark = pytest.mark.unit


def test_a_stack_that_was_never_started_has_its_parts_and_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JarFolder, "provide", lambda *_: pytest.fail("jars are fetched"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no Java
    monkeypatch.delenv("JAVA_HOME", raising=False)
    state = stack_state(tmp_path / "stack")
    assert {part.health for part in state.parts} == {Health.STOPPED}
    assert state.url is None
