"""Test the DAGs of an Airflow that has makewhole's DAGs, and no pipeline file yet."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from tests.world.unconfigured import ORDERS_FILE

pytestmark = pytest.mark.unit

DAGS = Path(__file__).resolve().parents[3] / "dags"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("makewhole.config.pipeline_file._CHECKOUT", tmp_path)
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(tmp_path / "people"))
    return tmp_path


def form() -> dict[str, Any]:
    """Return the only DAG of the file with the on-call forms, as Airflow stores it."""
    [dag] = [value for value in runpy.run_path(str(DAGS / "makewhole_oncall.py")).values() if isinstance(value, DAG)]
    stored: dict[str, Any] = DagSerialization.to_dict(dag)["dag"]
    return stored


def test_the_on_call_form_is_there_before_the_first_pipeline_file_and_says_what_is_not() -> None:
    assert "There is no pipeline file yet" in form()["description"]
    assert "makewhole init" in form()["doc_md"]


def test_the_first_pipeline_file_takes_its_place(folder: Path) -> None:
    (folder / "orders.yaml").write_text(ORDERS_FILE)
    assert form()["description"] == "Check and repair one window of a pipeline now"


def test_a_pipeline_with_a_form_of_its_own_leaves_no_form_for_several(folder: Path) -> None:
    (folder / "people").write_text("roles: [payments]\n")
    (folder / "orders.yaml").write_text(ORDERS_FILE + "access: {run: [payments]}\n")
    assert form()["dag_id"] == "makewhole_oncall_orders"
