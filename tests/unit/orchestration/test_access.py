"""Test that a right on a DAG of one pipeline is one on no other pipeline."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from makewhole.model.errors import RefusedError
from makewhole.model.people.access import DagAccess
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.accept_dag import accept_dag, own_accept_dag
from makewhole.orchestration.access import (
    accept_dag_of,
    access_control,
    ask_dag_of,
    oncall_dag_of,
    requested_name,
    with_own_forms,
    with_shared_forms,
)
from makewhole.orchestration.dags import continue_dag, oncall_dag, own_oncall_dag, reconcile_dag
from makewhole.orchestration.notices.tasks import pipeline_of
from makewhole.orchestration.steps.undoing import requested_plan
from makewhole.orchestration.task_ids import pipeline_of_dag
from makewhole.orchestration.undo_dag import undo_dag

pytestmark = pytest.mark.unit

OPEN = Pipeline(name="shop", points={}, hops=())
GUARDED = Pipeline(name="pay", points={}, hops=(), access=DagAccess(run=("payments",), approve=("lead", "payments")))
RIGHTS = {
    "payments": {"DAGs": {"can_read", "can_edit"}, "DAG Runs": {"can_read", "can_create"}},
    "lead": {"DAGs": {"can_read", "can_edit"}, "DAG Runs": {"can_read"}},
}
FILE = """\
version: 2
pipeline: {name}
points:
  outbox: {{kind: ledger, connection: db, table: outbox, key: id, time: at}}
  orders: {{kind: topic, connection: log, topic: orders, key: "$.id"}}
hops:
  - {{from: outbox, to: orders}}
{more}
"""


@pytest.fixture(autouse=True)
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, more in (("shop", ""), ("pay", "access: {run: [payments]}")):
        (tmp_path / f"{name}.yaml").write_text(FILE.format(name=name, more=more))
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))
    (tmp_path / "people").write_text("roles: [payments, lead, Viewer]\n")
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(tmp_path / "people"))


def own_dags(pipeline: Pipeline) -> list[DAG]:
    makers = (reconcile_dag, continue_dag, undo_dag, own_oncall_dag, own_accept_dag)
    return [make(pipeline) for make in makers]


def test_who_may_run_also_looks_and_edits_and_who_approves_starts_nothing() -> None:
    assert access_control(GUARDED) == RIGHTS
    readers = Pipeline(name="pay", points={}, hops=(), access=DagAccess(read=("Viewer",)))
    assert access_control(readers) == {"Viewer": {"DAGs": {"can_read"}, "DAG Runs": {"can_read"}}}


def test_a_role_that_the_deployment_does_not_list_has_no_right(tmp_path: Path) -> None:
    """Where the auth manager has none of the name, Airflow takes all DAGs of the file away: other pipelines', too."""
    (tmp_path / "people").write_text("roles: [lead]\n")
    assert access_control(GUARDED) == {"lead": RIGHTS["lead"]}
    (tmp_path / "people").write_text("roles: 1: 2\n")
    assert access_control(GUARDED) == {}


def test_without_access_rights_are_left_alone_and_with_an_empty_one_they_are_taken() -> None:
    assert access_control(OPEN) is None
    assert access_control(Pipeline(name="pay", points={}, hops=(), access=DagAccess())) == {}


def test_all_dags_of_a_pipeline_have_its_rights_as_airflow_stores_them() -> None:
    for dag in own_dags(GUARDED):
        stored = DagSerialization.from_dict(DagSerialization.to_dict(dag)).access_control
        assert stored == RIGHTS, dag.dag_id
        assert pipeline_of_dag(dag.dag_id) == "pay"
    for dag in [*own_dags(OPEN), oncall_dag([OPEN]), accept_dag([OPEN])]:
        assert dag.access_control is None, dag.dag_id


def test_only_undos_begin_paused_and_scheduled_runs_as_airflow_has_it() -> None:
    paused = {dag.dag_id: dag.is_paused_upon_creation for dag in own_dags(GUARDED)}
    assert paused == {
        "makewhole_reconcile_pay": None,
        "makewhole_continue_pay": False,
        "makewhole_undo_pay": True,
        "makewhole_oncall_pay": False,
        "makewhole_accept_pay": False,
    }


def test_no_form_of_one_pipeline_asks_which_and_no_form_of_several_offers_a_guarded_one() -> None:
    for dag in own_dags(GUARDED):
        assert "pipeline" not in dag.params, dag.dag_id
    assert (with_shared_forms([OPEN, GUARDED]), with_own_forms([OPEN, GUARDED])) == ([OPEN], [GUARDED])
    assert (oncall_dag_of(OPEN), oncall_dag_of(GUARDED)) == ("makewhole_oncall", "makewhole_oncall_pay")
    assert (accept_dag_of(OPEN), accept_dag_of(GUARDED)) == ("makewhole_accept", "makewhole_accept_pay")
    assert (ask_dag_of(OPEN), ask_dag_of(GUARDED)) == ("makewhole_ask", "makewhole_ask_pay")


def run_of(dag: str, **form: Any) -> dict[str, Any]:
    return {"ti": SimpleNamespace(dag_id=dag, xcom_pull=lambda **_: None), "params": form}


@pytest.mark.parametrize("dag", ["makewhole_oncall_pay", "makewhole_accept_pay", "makewhole_undo_pay"])
def test_a_form_cannot_turn_a_dag_to_another_pipeline(dag: str) -> None:
    """Airflow takes members of `conf` that no Param names."""
    assert requested_name(run_of(dag, pipeline="shop")) == "pay"
    assert pipeline_of(run_of(dag, pipeline="shop")) == "pay"


def test_a_form_of_several_pipelines_is_refused_for_a_guarded_one() -> None:
    assert requested_name(run_of("makewhole_oncall", pipeline="shop")) == "shop"
    with pytest.raises(RefusedError) as caught:
        requested_name(run_of("makewhole_oncall", pipeline="pay"))
    assert str(caught.value) == (
        "makewhole_oncall cannot be run for pay: its file names who may (`access`), and it has DAGs of its own; use "
        "makewhole_oncall_pay"
    )


def test_an_undo_of_another_pipeline_is_refused_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = SimpleNamespace(plan=SimpleNamespace(pipeline="pay"))
    monkeypatch.setattr("makewhole.journal.database.connect", lambda: nullcontext(None))
    monkeypatch.setattr("makewhole.journal.plans.get_plan", lambda *_: stored)
    assert requested_plan(run_of("makewhole_undo_pay", plan=" p1 ")) == "p1"
    with pytest.raises(RefusedError) as caught:
        requested_plan(run_of("makewhole_undo_shop", plan="p1"))
    assert str(caught.value) == (
        "plan p1 is of pay: makewhole_undo_shop takes no plan of it back; use makewhole_undo_pay"
    )
