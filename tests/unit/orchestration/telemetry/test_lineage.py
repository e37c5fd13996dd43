"""Test which datasets and assertions are reported of a window."""

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from makewhole.model.connection import Connection, FolderConnection, KafkaConnection, PostgresConnection
from makewhole.model.gate import Gate
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import WindowState
from makewhole.orchestration.telemetry import lineage

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
PIPELINE = Pipeline(
    name="shop",
    points={
        "outbox": TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="shop.outbox", key=("id",)),
        "orders": TopicPoint(name="orders", connection="log", topic="shop-orders", key=("$.id",)),
        "files": TablePoint(name="files", kind=PointKind.STORE, connection="disk", table="orders", key=("id",)),
    },
    hops=tuple(
        Hop(source=source, target=target, remedies=REPORT)
        for source, target in (("outbox", "orders"), ("orders", "files"))
    ),
    gate=Gate(missing=2),
)
CONNECTIONS: Mapping[str, Connection] = {
    "db": PostgresConnection(id="db", dsn="postgresql://ann:secret@pg:5433/erp"),
    "log": KafkaConnection(id="log", properties={"bootstrap.servers": "k2:9092, k1:9092"}),
    "disk": FolderConnection(id="disk", path="/data"),
}
COUNTS = {
    "outbox→orders": HopCounts(matched=97, missing=3, source_rows=100, target_rows=97),
    "orders→files": HopCounts(matched=96, duplicate=1, source_rows=97, target_rows=98),
}


def reported(
    counts: Mapping[str, HopCounts] = COUNTS,
    accepted: Mapping[str, Mapping[str, int]] | None = None,
    state: WindowState = WindowState.GAPS,
    pipeline: Pipeline = PIPELINE,
) -> lineage.WindowLineage:
    return lineage.lineage_of(pipeline, CONNECTIONS, counts, accepted or {}, state)


def failed(window: lineage.WindowLineage) -> Mapping[str, list[tuple[str, str, str]]]:
    return {
        point.name: [(item.name, item.expected, item.actual) for item in point.assertions if not item.holds]
        for point in window.points
    }


def test_points_are_datasets_by_openlineages_names_with_the_rows_that_were_read() -> None:
    window = reported()
    assert [(point.namespace, point.name, point.rows) for point in window.points] == [
        ("postgres://pg:5433", "erp.shop.outbox", 100),
        ("kafka://k1:9092", "shop-orders", 97),
        ("makewhole://disk", "orders", 98),
    ]
    assert window.asset is None
    assert "secret" not in repr(window)


def test_each_hop_is_held_to_the_gate_beside_what_was_accepted() -> None:
    certified = ("certified", "certified", "gaps")
    assert failed(reported()) == {
        "erp.shop.outbox": [certified],
        "shop-orders": [certified, ("outbox-orders.missing", "at most 2", "3")],
        "orders": [certified, ("orders-files.duplicate", "at most 0", "1")],
    }
    accepted = {"outbox→orders": {"missing": 1}, "orders→files": {"duplicate": 1}}
    window = reported(accepted=accepted, state=WindowState.CERTIFIED)
    assert failed(window) == {"erp.shop.outbox": [], "shop-orders": [], "orders": []}
    assert window.asset == ("makewhole_shop", "makewhole://certified/shop")


def test_what_was_not_judged_or_is_not_known_never_holds() -> None:
    empty = {name: HopCounts() for name in COUNTS}
    assert failed(reported(empty, state=WindowState.NOT_KNOWN))["orders"] == [
        ("certified", "certified", "not_known"),
        ("orders-files.judged", "at least 1", "0"),
    ]
    quiet = replace(PIPELINE, gate=Gate(allow_empty=True))
    assert failed(reported(empty, state=WindowState.CERTIFIED, pipeline=quiet))["orders"] == []
    unknown = {**COUNTS, "orders→files": HopCounts(matched=9, undecidable=1)}
    assert ("orders-files.undecidable", "at most 0", "1") in failed(reported(unknown))["orders"]
    broken = reported({}, state=WindowState.ERROR)
    assert [point.rows for point in broken.points] == [None, None, None]
    assert failed(broken)["orders"] == [("certified", "certified", "error")]


@pytest.fixture
def nothing_left() -> Iterator[None]:
    lineage.leave(lineage.WindowLineage(points=[], asset=None))
    yield
    lineage.leave(lineage.WindowLineage(points=[], asset=None))


@pytest.mark.usefixtures("nothing_left")
def test_provider_gets_what_was_left_as_facets() -> None:
    assert lineage.facets(None).inputs == []
    lineage.leave(reported(state=WindowState.CERTIFIED))
    given: Any = lineage.facets(None)
    outbox, orders, _ = given.inputs
    assert set(outbox.inputFacets) == set(orders.inputFacets) == {"dataQualityMetrics", "dataQualityAssertions"}
    assert orders.inputFacets["dataQualityMetrics"].rowCount == 97
    missing = {item.assertion: item for item in orders.inputFacets["dataQualityAssertions"].assertions}[
        "outbox-orders.missing"
    ]
    assert (missing.success, missing.expected, missing.actual, missing.severity) == (False, "at most 2", "3", "error")
    assert [(output.namespace, output.name) for output in given.outputs] == [("makewhole", "certified/shop")]


@pytest.mark.parametrize("provider", [None, "a module"])
def test_task_is_asked_only_where_the_provider_is_installed(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "find_spec", lambda _: provider)
    operator = SimpleNamespace()
    lineage.add_lineage(SimpleNamespace(operator=operator))
    asked = {"get_openlineage_facets_on_complete", "get_openlineage_facets_on_failure"}
    assert set(vars(operator)) == (asked if provider else set())
    assert importlib.util.find_spec("airflow.providers.openlineage") is not None
