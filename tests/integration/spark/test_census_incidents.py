"""Test what the census of earlier slices reports beside rows that came or went: a first count, and a missing index."""

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot import census
from tests.world.orders import orders
from tests.world.sql import run_sql
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def happened(shop: ReconciledShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return incidents.of(journal, context.window)


def test_slices_that_no_window_has_counted_are_counted_said_once_and_compared_from_then_on(
    shop: ReconciledShop,
) -> None:
    shop.trade(orders(range(5)))
    first, closed = shop.whole_way()
    assert (closed.state, happened(shop, first)) == (WindowState.CERTIFIED, [])
    run_sql(shop.journal, "delete from makewhole.slice_count")
    shop.trade(orders(range(100, 103), 1))
    second, closed = shop.whole_way(1)
    by_point = {incident.point: incident for incident in happened(shop, second)}
    assert {incident.kind for incident in by_point.values()} == {IncidentKind.SLICE_FIRST_COUNTED}
    assert by_point["warehouse"].detail["windows"] == 1
    assert closed.state is WindowState.CERTIFIED
    shop.trade(orders(range(200, 203), 2))
    third, closed = shop.whole_way(2)
    assert (closed.state, happened(shop, third)) == (WindowState.CERTIFIED, [])


def test_a_large_table_without_an_index_on_its_times_is_said_and_blocks_nothing(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "BYTES_WITHOUT_INDEX", 0)
    shop.trade(orders(range(5)))
    context, closed = shop.whole_way()
    by_point = {incident.point: (incident.kind, incident.detail) for incident in happened(shop, context)}
    column = context.pipeline.points["warehouse"].time  # type: ignore[union-attr]
    assert by_point["warehouse"] == (IncidentKind.NO_TIME_INDEX, {"column": column})
    assert closed.state is WindowState.CERTIFIED
