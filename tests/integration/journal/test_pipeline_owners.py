"""Test that of two Airflows at one journal one alone judges a pipeline."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowSkipException
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.journal.database import connect
from makewhole.journal.deployment import pipeline_owners
from makewhole.journal.deployment.pipeline_owners import Deployment
from makewhole.model.errors import JudgedElsewhereError
from makewhole.orchestration import housekeeping
from makewhole.orchestration.deployment import judged_here
from makewhole.orchestration.notices import tasks as notices
from tests.unit.config.conftest import MINIMAL
from tests.world.sql import run_sql

pytestmark = pytest.mark.integration

HERE = Deployment(name="here", address="https://airflow.example.org")
THERE = Deployment(name="there", address="https://other.example.org")

Command = Callable[..., Result]


@pytest.fixture
def makewhole(journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command against the journal of the test; the tasks of an Airflow called `here` have it, too."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("MAKEWHOLE_DEPLOYMENT", HERE.name)
    return lambda *arguments: CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"})


def described(pipeline: str) -> str:
    return MINIMAL.replace("pipeline: flights", f"pipeline: {pipeline}")


def claim(journal: str, pipeline: str, by: Deployment) -> None:
    with connect(journal) as session:
        pipeline_owners.claim(session, pipeline, by)


def owner_of(journal: str, pipeline: str) -> tuple[Any, ...]:
    [row] = run_sql(
        journal,
        "select deployment, address, released_by from makewhole.pipeline_owner where pipeline = %s",
        pipeline,
    )
    return row


def test_the_first_airflow_that_opens_a_window_judges_the_pipeline_and_no_other_does(journal: str) -> None:
    claim(journal, "orders", HERE)
    claim(journal, "orders", HERE)
    with pytest.raises(JudgedElsewhereError) as refused:
        claim(journal, "orders", THERE)

    said = str(refused.value)
    assert said.startswith("journal: pipeline orders: is judged by another Airflow since 20")
    assert said.endswith(
        "UTC: https://airflow.example.org (deployment here); this one is https://other.example.org (deployment there). "
        "Give this Airflow a journal of its own, or take the pipeline's file from its folders. Where the pipeline has "
        "moved here for good: makewhole pipelines --release orders"
    )
    claim(journal, "payments", THERE)
    assert owner_of(journal, "orders") == ("here", "https://airflow.example.org", None)
    assert owner_of(journal, "payments") == ("there", "https://other.example.org", None)


def test_an_airflow_with_another_address_is_the_same_one(journal: str) -> None:
    claim(journal, "orders", HERE)
    claim(journal, "orders", Deployment(name="here", address="https://moved.example.org"))

    assert owner_of(journal, "orders") == ("here", "https://moved.example.org", None)


def test_of_two_that_open_the_first_window_at_once_one_judges(journal: str) -> None:
    refused = []
    with connect(journal) as first:
        pipeline_owners.claim(first, "orders", HERE)

        def other() -> None:
            try:
                claim(journal, "orders", THERE)
            except JudgedElsewhereError as error:
                refused.append(error)

        waiting = threading.Thread(target=other)
        waiting.start()
        time.sleep(0.5)
        assert not refused
    waiting.join(30)

    assert len(refused) == 1
    assert owner_of(journal, "orders")[0] == "here"


def test_a_released_pipeline_is_of_the_next_airflow_that_opens_a_window(journal: str, makewhole: Command) -> None:
    claim(journal, "orders", THERE)

    released = makewhole("pipelines", "--release", "orders")
    assert released.exit_code == 0, released.output
    assert released.stdout.startswith("orders was judged by https://other.example.org (deployment there); the next")
    assert owner_of(journal, "orders")[2].endswith("(shell)")

    again = makewhole("pipelines", "--release", "orders")
    assert (again.exit_code, "no Airflow judges a pipeline orders" in again.stderr) == (2, True)
    assert makewhole("pipelines", "--release", "nowhere").exit_code == 2

    with connect(journal) as session:
        pipeline_owners.require_own(session, "orders", HERE)
        pipeline_owners.require_own(session, "orders", THERE)
    claim(journal, "orders", HERE)
    assert owner_of(journal, "orders") == ("here", "https://airflow.example.org", None)
    with pytest.raises(JudgedElsewhereError):
        claim(journal, "orders", THERE)


def test_pipelines_are_listed_with_their_airflow_where_there_are_several(
    journal: str, makewhole: Command, tmp_path: Path
) -> None:
    (tmp_path / "bookings.yaml").write_text(described("bookings"))
    claim(journal, "bookings", HERE)
    assert "airflow.example.org" not in makewhole("pipelines").stdout

    claim(journal, "orders", THERE)
    (tmp_path / "orders.yaml").write_text(described("orders"))
    (tmp_path / "new.yaml").write_text(described("new"))
    listed = [json.loads(line) for line in makewhole("pipelines", "--json").stdout.splitlines()]
    judged_by = {line["pipeline"]: line["deployment"] for line in listed}
    assert [judged_by[name] for name in ("bookings", "orders", "new")] == ["here", "there", None]
    text = makewhole("pipelines").stdout
    assert "https://other.example.org (there)" in text
    assert "none yet" in text


def test_housekeeping_and_messages_leave_pipelines_of_another_airflow_alone(
    journal: str, makewhole: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bookings.yaml").write_text(described("bookings"))
    monkeypatch.setattr(housekeeping, "compact_index", lambda name: pytest.fail(name))
    claim(journal, "bookings", THERE)

    with pytest.raises(AirflowSkipException, match="judged by another Airflow"):
        housekeeping.keep_small("bookings")

    [file] = tmp_path.glob("*.yaml")
    file.write_text(
        described("bookings")
        + "notify: {through: {mail: {notifier: nowhere.Mail, arguments: {text: '{{ makewhole.text }}'}}}}\n"
    )
    with caplog.at_level("INFO"):
        assert notices.send_all(None) == 1
    assert "nothing is sent of bookings from here: journal: pipeline bookings: is judged by another" in caplog.text


def test_the_tasks_of_an_airflow_without_a_name_choose_one_for_all(
    journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's database has the variable; here a dictionary stands for it."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_DEPLOYMENT", "")
    kept: dict[str, str] = {}

    def read(key: str, default: str | None = None) -> str | None:
        answer = kept.get(key, default)
        time.sleep(0.2)  # long enough for the others to have read, too
        return answer

    monkeypatch.setattr(Variable, "get", read)
    monkeypatch.setattr(Variable, "set", lambda key, value, _: kept.update({key: value}))

    tasks = [threading.Thread(target=judged_here.claim, args=(f"p{number}",)) for number in range(4)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join(60)

    assert {owner_of(journal, f"p{number}")[0] for number in range(4)} == {kept["makewhole_deployment"]}
