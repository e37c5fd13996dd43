"""Test the lists of pipelines and of plans, on a real journal."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.journal import leases
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


def test_a_running_plan_whose_task_has_ended_is_idle(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        plan = planned(session, opened(session, 1, WindowState.GAPS), PlanState.RUNNING, "shop-1")
        lease = leases.acquire(session, f"plan {plan}", "a task", 30)
    (worked_on,) = lines(makewhole("plan", "list", "--json"))
    with connect(journal) as session:
        leases.release(session, lease)
    (idle,) = lines(makewhole("plan", "list", "--json"))
    with connect(journal) as session:
        leases.acquire(session, f"plan {plan}", "another task", 30)
    (worked_on_again,) = lines(makewhole("plan", "list", "--json"))

    assert worked_on == worked_on_again
    assert worked_on["idle_since"] is None
    assert idle == worked_on | {"idle_since": idle["idle_since"]}
    assert datetime.fromisoformat(str(idle["idle_since"])) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("undoes", "what_to_do"),
    [
        (None, "judge the window again: makewhole run shop --window 1"),
        ("shop-0", "go on with it: makewhole plan undo shop-0"),
    ],
)
def test_an_idle_plan_says_what_to_do(journal: str, makewhole: Command, undoes: str | None, what_to_do: str) -> None:
    with connect(journal) as session:
        window = opened(session, 1, WindowState.GAPS)
        if undoes is not None:
            planned(session, window, PlanState.DONE, undoes)
        plan = planned(session, window, PlanState.RUNNING, "shop-1", undoes=undoes)
        leases.release(session, leases.acquire(session, f"plan {plan}", "a task", 30))

    text = " ".join(makewhole("plan", "show", plan).stdout.split())
    assert "no task has worked on it since" in text
    assert what_to_do in text
    listed = makewhole("plan", "list").stdout.split()
    assert "no task has worked" in " ".join(listed)
    assert json.loads(makewhole("plan", "show", plan, "--json").stdout)["idle_since"] is not None


def test_the_version_is_printed(makewhole: Command) -> None:
    result = makewhole("--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "makewhole")


def test_names_of_commands_are_completed_in_the_shell(makewhole: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MAKEWHOLE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "makewhole pip")
    monkeypatch.setenv("COMP_CWORD", "1")
    result = CliRunner().invoke(app, [], prog_name="makewhole")
    assert result.stdout.split() == ["pipelines"]
