"""Test what is sent of pipelines whose files have problems, and that the DAG which sends is red for them: with a
notifier of Airflow's, a server of webhooks, and a real journal."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from makewhole.config.pipeline_file import scheduled_pipelines
from makewhole.journal import step_failures
from makewhole.journal.database import connect
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import RefusedError
from makewhole.orchestration.dags import reconcile_dag
from makewhole.orchestration.notices.tasks import send_all
from tests.world.noticed_shop import texts
from tests.world.people import TakenPosts

pytestmark = pytest.mark.integration

NOTIFY_FILE = Path(__file__).resolve().parents[3] / "dags" / "makewhole_notify.py"
BAD = """\
version: 2
pipeline: shop
schedule: "@daily"
settle: soon
notify:
  through:
    chat:
      notifier: airflow.providers.http.notifications.HttpNotifier
      arguments: {endpoint: alerts, json: {text: "{{ makewhole.text }}"}}
    broken: {notifier: Pager, arguments: {text: "{{ makewhole.text }}"}}
    silent: {notifier: ops.Pager, arguments: {text: "nothing of it"}}
"""
UNREADABLE = "version: 2\npipeline: other\nschedule: '@daily'\nnotify: {through: [\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of pipelines with a file that has a mistake."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(folder))
    (folder / "shop.yaml").write_text(BAD)
    return folder


def fails_to_open(pipeline: str) -> dict[str, Any]:
    """Write that a run opened no window; return the context of its task."""
    dag = f"makewhole_reconcile_{pipeline}"
    place = StepPlace(pipeline=pipeline, step="open_window", dag=dag, run="tonight")
    with connect() as journal:
        step_failures.put(journal, place, RefusedError("settle (line 4): 'soon' is no time"))
    ti = SimpleNamespace(task_id="open_window", dag_id=dag, run_id="tonight", xcom_pull=lambda **_: None)
    return {"ti": ti, "params": {}}


def test_people_know_of_a_file_with_a_mistake_by_the_channels_that_are_whole(folder: Path, hook: TakenPosts) -> None:
    pipeline = scheduled_pipelines([folder])["shop"]
    assert pipeline.notify is not None and [*pipeline.notify.channels] == ["chat"]
    context = fails_to_open("shop")
    callbacks: Any = reconcile_dag(pipeline).get_task("open_window").on_failure_callback
    for callback in callbacks:
        callback(context)

    [text] = texts(hook)
    assert text.startswith(
        "- shop could open no window in run tonight, since 0 min: settle (line 4): 'soon' is no time"
    )


def test_the_dag_that_sends_is_red_for_files_with_problems_and_sends_all_the_same(
    folder: Path, hook: TakenPosts
) -> None:
    (folder / "other.yaml").write_text(UNREADABLE)
    fails_to_open("shop")

    with pytest.raises(AirflowFailException) as caught:
        send_all(None)

    assert len(hook.posts) == 1
    assert f"{folder}/shop.yaml: settle (line 4): 'soon'" in str(caught.value)
    assert f"{folder}/other.yaml: " in str(caught.value)


@pytest.mark.parametrize("text", [BAD, UNREADABLE])
def test_the_dag_that_sends_stays_where_the_only_file_has_a_mistake(folder: Path, text: str) -> None:
    (folder / "shop.yaml").write_text(text)
    assert "makewhole_notify" in runpy.run_path(str(NOTIFY_FILE))
