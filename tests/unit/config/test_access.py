"""Test what `access` of a pipeline file may say: roles of Airflow by what they may do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.people.access import problems_of_roles
from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.errors import ConfigurationError
from makewhole.model.people.access import DagAccess
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

Write = Callable[[str], Path]


def test_roles_are_read_by_what_they_may(write: Write, minimal: str) -> None:
    text = minimal + "access: {run: [payments, Data Ops], approve: lead}\n"
    assert load_pipeline(write(text)).access == DagAccess(run=("payments", "Data Ops"), approve=("lead",))
    assert load_pipeline(write(minimal + "access: {}\n")).access == DagAccess()
    assert load_pipeline(write(minimal)).access is None


def test_who_may_run_decides_nothing_that_a_window_keeps(write: Write, minimal: str) -> None:
    plain, named = load_pipeline(write(minimal)), load_pipeline(write(minimal + "access: {run: [payments]}\n"))
    assert configuration_document(named) == configuration_document(plain)


def test_everything_that_is_wrong_is_reported_at_once(write: Write, minimal: str) -> None:
    text = minimal + 'access:\n  run: []\n  approve: [" lead"]\n  read: [a, a]\n  undo: [lead]\n'
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(text))
    assert [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in caught.value.problems] == [
        "access.run (line 11): is an empty list. Name at least one",
        "access.approve[0] (line 12): ' lead' is not the name of a role. Use 1 to 64 printable characters, as "
        "Airflow's auth manager has it",
        "access.read[1] (line 13): 'a' is named twice. Name it once",
        "access.undo (line 14): is not a key here. Allowed: approve, read, run",
    ]


def test_a_file_with_problems_elsewhere_keeps_its_roles(write: Write, minimal: str) -> None:
    stand_in = read_file(write(minimal + "access: {run: [payments]}\nsettle: soon\n")).stand_in
    assert stand_in is not None
    assert stand_in.access == DagAccess(run=("payments",))


def test_roles_that_the_deployment_does_not_list_are_named(
    write: Write, minimal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = load_pipeline(write(minimal + "access: {run: [payments], approve: [lead]}\n"))
    monkeypatch.delenv("MAKEWHOLE_GROUPS", raising=False)
    assert [problem.path for problem in problems_of_roles([guarded])] == ["access.run", "access.approve"]
    listed = tmp_path / "people"
    listed.write_text("roles: [payments]\n")
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(listed))
    assert [str(problem) for problem in problems_of_roles([guarded])] == [
        f"pipeline {guarded.name}: access.approve: 'lead' is not among the roles in the file of MAKEWHOLE_GROUPS, and "
        "is given no right. Write it there, below 'roles', when Airflow's auth manager has it; or take it out here"
    ]
    listed.write_text("roles: [payments]\nteams: {}\n")
    assert "teams" in str(problems_of_roles([guarded])[0])
    assert problems_of_roles([load_pipeline(write(minimal))]) == ()
