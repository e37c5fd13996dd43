"""Test the page with the result of a run, the runbook's entries, and the links of tasks to both."""

import re
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from makewhole.orchestration.dags import reconcile_dag
from makewhole.orchestration.provider import provider_info
from makewhole.orchestration.task_ids import WINDOW_TASKS
from makewhole.orchestration.ui.html_pages import page_of_document, page_of_run
from makewhole.orchestration.ui.links import LINKS
from makewhole.orchestration.ui.runbook import RUNBOOK, anchor, entry_of_state, entry_of_task
from makewhole.shipped import shipped

pytestmark = pytest.mark.unit

CLOSED: dict[str, Any] = {
    "pipeline": "orders",
    "window": 3,
    "revision": 2,
    "state": "gaps",
    "reason": "1,200 keys <missing>",
    "incidents": ["truncated"],
    "found": {
        "outbox→orders": {"source_keys": 10_200, "matched": 7_900, "missing": 2_300, "before_baseline": 4},
        "orders→warehouse": {"source_keys": 10_200, "matched": 10_200, "missing": 0},
    },
    "hops": {
        "outbox→orders": {
            "source_keys": 10_200,
            "source_rows": 10_201,
            "target_rows": 9_000,
            "matched": 9_000,
            "missing": 1_200,
            "duplicate": 1,
            "before_baseline": 4,
        },
        "orders→warehouse": {"source_keys": 10_200, "matched": 10_200, "missing": 0, "duplicate": 0},
    },
    "plan": {"id": "orders-3-2", "state": "done", "actions": {"produce": 1_100}},
    "certificate": None,
}


def text_of(page: str) -> str:
    """Return what a person reads of a page."""
    body = page.split("<body>")[1]
    return re.sub(r"\s+", " ", re.sub(r"<[^<>]*>", " ", body)).strip()


def test_page_of_a_run_shows_counts_plan_and_entries_of_the_runbook() -> None:
    page = page_of_run("nightly", "<b>", CLOSED, {"publish": "publish failed: away", "certify": "certify failed: gaps"})
    assert text_of(page) == (
        "Window 3 (revision 2) of orders run &lt;b&gt; of nightly gaps : 1,200 keys &lt;missing&gt; "
        "publish failed: away ( runbook ) "
        "Findings outbox→orders 10,200 keys at the source, 9,000 matched. "
        "Rows and records: 10,201 at the source, 9,000 at the target. "
        "verdict found whole again left missing 2,300 1,100 1,200 duplicate 0 0 1 before baseline 4 0 4 "
        "orders→warehouse 10,200 keys at the source, 10,200 matched. "
        "Rows and records: 0 at the source, 0 at the target. Nothing was wrong. "
        "All of them, by key: makewhole findings orders --window 3 "
        "Plan orders-3-2: done, 1,100 produce makewhole plan show orders-3-2 "
        "Certificate No certificate was issued. "
        "Runbook task publish the window is gaps truncated"
    )
    assert "<missing>" not in page
    links = re.findall(r'href="http://localhost:8080/makewhole/docs/runbook.md#([^"]+)"', page)
    assert links == ["publish-is-red", "publish-is-red", "a-window-has-gaps", "truncated"]


def test_page_of_a_certified_run_names_its_certificate() -> None:
    certificate = {"number": 7, "sha256": "ab" * 32, "uri": "s3://proofs/7.json"}
    page = text_of(page_of_run("nightly", "r", {**CLOSED, "plan": None, "certificate": certificate}, {}))
    assert "Plan No plan was made." in page
    assert f"number 7 of the chain, SHA-256 {'ab' * 32} s3://proofs/7.json makewhole certificate verify orders" in page


def test_page_of_a_run_without_a_window_says_what_failed() -> None:
    page = text_of(page_of_run("nightly", "r", None, {"open_window": "open_window failed: no topic"}))
    assert page == (
        "No window came to its end run r of nightly open_window failed: no topic ( runbook ) Findings Nothing was "
        "judged. Plan No plan was made. Certificate No certificate was issued. Runbook task open_window"
    )
    assert text_of(page_of_run("nightly", "r", None, {})).endswith("Runbook Tasks")


def test_every_entry_that_pages_link_to_is_in_the_runbook() -> None:
    page = page_of_document(Path(shipped("docs"), RUNBOOK).read_text(encoding="utf-8"))
    there = set(re.findall(r'<h[1-6] id="([^"]+)"', page))
    wanted = {entry_of_task(task) for task in WINDOW_TASKS} | {entry_of_state(state) for state in WindowState}
    wanted |= {anchor(kind.value) for kind in IncidentKind}
    assert wanted - there == set()


def test_document_is_shown_without_its_own_html_and_with_the_anchors_of_its_headings() -> None:
    page = page_of_document("# It `stays` _open_\n\n<script>x</script> | [a](b.md)\n\n| a |\n| --- |\n| 1 |\n")
    assert '<h1 id="it-stays-_open_">' in page
    assert "<script>" not in page
    assert "<td>1</td>" in page


@pytest.fixture
def links(tmp_path: Path) -> Mapping[str, Mapping[str, str]]:
    """The links of each task of a window, by their names."""
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    dag = reconcile_dag(load_pipeline(tmp_path / "shop.yaml"))
    return {
        task.task_id: {
            link.name: link.get_link(
                cast(Any, task), ti_key=cast(Any, SimpleNamespace(dag_id="d", run_id="r+1", task_id=task.task_id))
            )
            for link in task.operator_extra_links
        }
        for task in dag.tasks
    }


PIPELINE = """\
version: 2
pipeline: shop
points:
  outbox: {kind: ledger, connection: db, table: s.outbox, key: id, time: at}
  orders: {kind: topic, connection: kafka, topic: orders, key: "$.id"}
hops:
  - {from: outbox, to: orders}
"""


def test_tasks_link_to_the_result_of_their_run_and_to_their_entry_of_the_runbook(
    links: Mapping[str, Mapping[str, str]],
) -> None:
    run, runbook = "http://localhost:8080/makewhole/dags/d/runs/r+1", "http://localhost:8080/makewhole/docs/runbook.md"
    assert links["certify"] == {
        "Findings": f"{run}#findings",
        "Plan": f"{run}#plan",
        "Certificate": f"{run}#certificate",
        "Runbook": f"{run}#runbook",
    }
    assert links["plan"] == {"Plan": f"{run}#plan", "Runbook": f"{runbook}#plan-went-on-without-a-plan"}
    assert links["snapshot"]["Runbook"] == f"{runbook}#snapshot-is-red"
    assert {task for task, its in links.items() if "Runbook" not in its} == {"report_watermark"}


def test_provider_names_every_link() -> None:
    assert [resolve_name(name) for name in provider_info()["extra-links"]] == list(LINKS)
