"""Test the lists of pipelines and of plans, on a real journal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.journal.database import connect
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState
from tests.integration.window.waiting_rows import opened, planned
from tests.unit.config.conftest import MINIMAL

pytestmark = pytest.mark.integration

Command = Callable[..., Result]


@pytest.fixture
def makewhole(journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command against the journal of the test, with a folder of pipeline files."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))
    return lambda *arguments: CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"})


def lines(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_pipelines_of_files_and_of_the_journal_are_listed_with_their_newest_window(
    journal: str, makewhole: Command, tmp_path: Path
) -> None:
    (tmp_path / "new.yaml").write_text(MINIMAL.replace("pipeline: flights", 'pipeline: new\nschedule: "@daily"'))
    (tmp_path / "bad.yaml").write_text("version: 2\npipeline: bad\npoints: {}\n")
    with connect(journal) as session:
        opened(session, 1, WindowState.CERTIFIED)
        opened(session, 2, WindowState.GAPS)

    listed = {str(line["pipeline"]): line for line in lines(makewhole("pipelines", "--json"))}

    assert {"bad", "new", "shop"} <= listed.keys()
    assert (listed["shop"]["window"], listed["shop"]["state"], listed["shop"]["file"]) == (2, "gaps", None)
    assert (listed["new"]["schedule"], listed["new"]["window"], listed["new"]["problems"]) == ("@daily", None, 0)
    assert listed["bad"]["problems"] != 0
    text = makewhole("pipelines").stdout
    assert "none: its windows are in the journal alone" in text
    assert "bad.yaml (2 problems: makewhole check)" in text


def test_plans_are_listed_newest_first_by_pipeline_and_state(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        for number, state in ((1, PlanState.DONE), (2, PlanState.REFUSED)):
            planned(session, opened(session, number, WindowState.GAPS), state, f"shop-{number}", reason="why not")
    with connect(journal) as session:
        window = opened(session, 1, WindowState.GAPS, pipeline="other")
        planned(session, window, PlanState.AWAITING_APPROVAL, "other-1")

    assert [line["id"] for line in lines(makewhole("plan", "list", "--json"))] == ["other-1", "shop-2", "shop-1"]
    assert [line["id"] for line in lines(makewhole("plan", "list", "shop", "--last", "1", "--json"))] == ["shop-2"]
    (done,) = lines(makewhole("plan", "list", "--state", "done", "--json"))
    assert (done["id"], done["state"], done["counts"]) == ("shop-1", "done", {"produce": 3})
    text = makewhole("plan", "list").stdout
    assert "awaiting_approval" in text
    assert "why not" in text
    assert makewhole("plan", "list", "nowhere").exit_code == 2


def test_the_version_is_printed(makewhole: Command) -> None:
    result = makewhole("--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "makewhole")


def test_names_of_commands_are_completed_in_the_shell(makewhole: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MAKEWHOLE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "makewhole pip")
    monkeypatch.setenv("COMP_CWORD", "1")
    result = CliRunner().invoke(app, [], prog_name="makewhole")
    assert result.stdout.split() == ["pipelines"]
