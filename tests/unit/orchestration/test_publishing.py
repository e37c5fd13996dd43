"""Test the task that publishes a window: in which DAGs it is, and what it reports to the asset."""

from collections import defaultdict
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk import DAG, Asset, AssetAlias, TriggerRule
from airflow.sdk.exceptions import AirflowSkipException

from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Publish
from makewhole.orchestration.accept_dag import accept_dag
from makewhole.orchestration.dags import continue_dag, oncall_dag, own_oncall_dag, reconcile_dag
from makewhole.orchestration.steps import publishing
from makewhole.orchestration.undo_dag import undo_dag
from makewhole.publishing.revocations import ChangedNotice

pytestmark = pytest.mark.unit

PLAIN = Pipeline(name="plain", points={}, hops=())
PUBLISHING = Pipeline(name="shop", points={}, hops=(), publish=(Publish(point="orders", path="/once"),))
ASSET = Asset(name="makewhole_published_shop", uri="makewhole://published/shop")
POINTS = {
    "orders": {
        "manifest": None,
        "topic": None,
        "records": None,
        "complete_through": 6,
        "published": [{"window": 6, "revision": 1, "manifest": "/once/manifests/w", "records": 5}],
    }
}


def outlets(dag: DAG) -> list[Any]:
    """Return what the task that publishes updates; the test fails where there is none."""
    task = dag.get_task("publish")
    assert task.upstream_task_ids == {"certify"}
    return list(task.outlets)


def test_only_dags_of_pipelines_that_publish_have_the_task() -> None:
    for dag in (reconcile_dag(PUBLISHING), continue_dag(PUBLISHING), own_oncall_dag(PUBLISHING)):
        assert outlets(dag) == [ASSET]
    assert outlets(oncall_dag([PLAIN, PUBLISHING])) == [AssetAlias(name="makewhole_published")]
    for dag in (reconcile_dag(PLAIN), oncall_dag([PLAIN]), continue_dag(PLAIN)):
        assert "publish" not in dag.task_ids


def test_task_that_reports_revocations_runs_whatever_became_of_the_window() -> None:
    for dag in (reconcile_dag(PUBLISHING), oncall_dag([PLAIN, PUBLISHING]), continue_dag(PUBLISHING)):
        task = dag.get_task("report_revoked")
        assert task.upstream_task_ids == {"certify"}
        assert (task.is_teardown, task.trigger_rule) == (True, TriggerRule.ALL_DONE_SETUP_SUCCESS)
        assert task.on_failure_fail_dagrun
        assert list(task.outlets) == outlets(dag)
        publish = dag.get_task("publish")
        assert publish.trigger_rule == TriggerRule.ALL_SUCCESS  # it fails with `certify`, and the run with it
        assert publish.downstream_task_ids == set()
    assert "report_revoked" not in reconcile_dag(PLAIN).task_ids
    for dag, name in ((undo_dag(PUBLISHING), "reopen"), (accept_dag([PUBLISHING]), "accept")):
        assert list(dag.get_task(name).outlets) == [AssetAlias(name="makewhole_published")]


def context(try_number: int = 1) -> dict[str, Any]:
    """Return what a task of a run is given, whose window was opened."""
    opened = {"pipeline": "shop", "window": 7, "revision": 2, "label": "shop window 7 (revision 2)"}
    events: Any = defaultdict(MagicMock)
    task = SimpleNamespace(xcom_pull=MagicMock(return_value=opened), try_number=try_number, dag_id="shop", run_id="r")
    return {"ti": task, "outlet_events": events}


def published(monkeypatch: pytest.MonkeyPatch, points: dict[str, Any], pipeline: Pipeline = PUBLISHING) -> None:
    window = SimpleNamespace(number=7, revision=2)
    monkeypatch.setattr(publishing, "load_pipeline", lambda _: pipeline)
    monkeypatch.setattr("makewhole.journal.database.connect", lambda: nullcontext(None))
    monkeypatch.setattr("makewhole.journal.windows.load", lambda *_: window)
    monkeypatch.setattr("makewhole.publishing.published.report_published", lambda *_: points)


def test_event_says_which_window_is_published_where(monkeypatch: pytest.MonkeyPatch) -> None:
    published(monkeypatch, POINTS)
    given = context()
    publishing.announce(given)
    extra = {"pipeline": "shop", "window": 7, "revision": 2, "points": POINTS}
    assert given["outlet_events"][ASSET].extra == extra
    given["outlet_events"][AssetAlias(name="makewhole_published")].add.assert_called_once_with(ASSET, extra=extra)


def test_window_that_waits_for_an_older_one_has_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    published(monkeypatch, {})
    given = context()
    with pytest.raises(
        AirflowSkipException, match="is not published: it waits for an older window that is not certified, or"
    ):
        publishing.announce(given)
    assert given["outlet_events"] == {}


def test_task_is_skipped_where_the_pipeline_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    published(monkeypatch, {}, PLAIN)
    with pytest.raises(AirflowSkipException, match="publishes nothing: no topic point of its file has 'publish'"):
        publishing.require_published_points(context())


def test_run_that_opened_no_window_reports_no_revocation(monkeypatch: pytest.MonkeyPatch) -> None:
    given = context()
    given["ti"].xcom_pull.return_value = None
    monkeypatch.setattr(publishing, "get_current_context", lambda: given)
    with pytest.raises(AirflowSkipException, match="no window was opened in this run"):
        publishing.report_revoked()


NOTICE = ChangedNotice(
    point="orders",
    window=7,
    revision=1,
    manifest="/once/manifests/w",
    revocation={"ordinal": 9, "because": {"reason": "3 missing"}},
)
REVOKED = [SimpleNamespace(publication=SimpleNamespace(point="orders"), revoked=[7])]


def revoked(monkeypatch: pytest.MonkeyPatch, changed: list[ChangedNotice], points: list[Any]) -> None:
    monkeypatch.setenv("MAKEWHOLE_STORAGE", "/storage")
    monkeypatch.setattr("makewhole.journal.database.connect", lambda: nullcontext(None))
    monkeypatch.setattr("makewhole.publishing.revocations.note_revocations", lambda *_: changed)
    monkeypatch.setattr("makewhole.publishing.published.published_points", lambda *_: points)


def test_event_says_which_published_window_is_not_proven_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    revoked(monkeypatch, [NOTICE], REVOKED)
    given = context()
    assert publishing.note_revoked(PUBLISHING, given)
    assert given["outlet_events"][ASSET].extra == {
        "pipeline": "shop",
        "points": {},
        "changed": [
            {
                "point": "orders",
                "window": 7,
                "revision": 1,
                "manifest": "/once/manifests/w",
                "revoked_by": 9,
                "because": "3 missing",
            }
        ],
        "revoked": {"orders": [7]},
    }


def test_event_comes_again_with_a_task_that_is_tried_again_and_not_with_every_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    revoked(monkeypatch, [], REVOKED)
    given = context()
    assert not publishing.note_revoked(PUBLISHING, given)
    assert given["outlet_events"] == {}
    again = context(try_number=2)
    assert publishing.note_revoked(PUBLISHING, again)
    assert again["outlet_events"][ASSET].extra["revoked"] == {"orders": [7]}
    revoked(monkeypatch, [], [])
    assert not publishing.note_revoked(PUBLISHING, context(try_number=2))
