"""Test which points are read together, and in which order their data is looked at."""

from collections.abc import Sequence
from typing import Any

import pytest

from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.postgres import postgres_tables
from makewhole.postgres.read import export
from makewhole.postgres.read.export import hold_view
from makewhole.postgres.read.slices import count_rows, count_rows_and_ahead
from makewhole.tables.shape import RowsAhead
from makewhole_spark.carrier import carry_released
from makewhole_spark.snapshot import read_tables, read_topics
from makewhole_spark.snapshot.read_piece import TablePiece, TopicPiece
from tests.world.orders import orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Watched:
    """Note what a snapshot step did: the points of each of its Spark jobs, and the tables in order of their views."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.jobs: list[list[str]] = []
        self.views: list[str] = []

        def carried(spark: Any, journal: Any, pieces: Sequence[TopicPiece | TablePiece], run: Any) -> Any:
            if pieces:
                self.jobs.append([piece.point.name for piece in pieces])
            return carry_released(spark, journal, pieces, run)

        def held(connection: Any, shape: Any) -> Any:
            self.views.append(shape.point.name)
            return hold_view(connection, shape)

        for module in (read_topics, read_tables):
            patch.setattr(module, "carry_released", carried)
        patch.setattr(postgres_tables, "hold_view", held)


def test_ledgers_and_stores_that_are_read_by_their_times_are_read_at_once(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone would leave a core idle at its end. The ledger's view is the older one: what is in a store was in the
    ledger before."""
    made = orders(range(10))
    shop.trade(made, unsent=made[:1], unloaded=made[1:2])
    watched = Watched(monkeypatch)

    context = shop.judged()

    assert watched.jobs == [["orders"], ["outbox", "warehouse"]]
    assert watched.views == ["outbox", "warehouse"]
    assert shop.found(context, LEDGER_HOP) == {"O0": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O1": ("missing", "lost_after_topic")}
    manifests = shop.manifests(context)
    assert {name: manifest["rows"] for name, manifest in manifests.items()} == {
        "outbox": 10,
        "orders": 9,
        "warehouse": 8,
    }


def test_a_store_of_versions_is_read_when_the_keys_of_its_source_are_known(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(topic_key="kafka.key", is_upsert=True)
    shop.trade(orders(range(10)))
    watched = Watched(monkeypatch)

    context = shop.judged()

    assert watched.jobs == [["orders"], ["outbox"], ["warehouse", "warehouse", "warehouse"]]
    assert shop.found(context, STORE_HOP) == {}


def test_a_store_without_a_time_column_is_read_by_keys_after_the_others(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"aside": {name: value for name, value in store("db", "warehouse").items() if name != "time"}}
    shop.describe(more_points=points, more_hops=[{"from": "outbox", "to": "aside"}])
    shop.trade(orders(range(10)))
    assert isinstance(shop.pipeline.points["aside"], TablePoint) and shop.pipeline.points["aside"].time is None
    watched = Watched(monkeypatch)

    context = shop.judged()

    assert watched.jobs == [["orders"], ["outbox", "warehouse"], ["aside", "aside"]]
    assert shop.found(context, "outbox→aside") == {}


OWN_SLICES = "select slice, point, rows from makewhole.slice_count where slice = number order by slice, point"


def test_a_window_counts_its_own_rows_while_it_reads_them(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting them first would read each table once more."""
    counted: list[list[int]] = []

    def watched(session: Any, point: Any, slices: Sequence[TimeSlice]) -> dict[int, int]:
        counted.append([part.window for part in slices])
        return count_rows(session, point, slices)

    def watched_census(session: Any, point: Any, slices: Sequence[TimeSlice]) -> tuple[dict[int, int], RowsAhead]:
        counted.append([part.window for part in slices])
        return count_rows_and_ahead(session, point, slices)

    monkeypatch.setattr(export, "count_rows_and_ahead", watched_census)
    monkeypatch.setattr(export, "count_rows", watched)
    shop.trade([*orders(range(10)), *orders(range(20, 24), 1)])

    shop.judged(0)
    assert counted == [[], []]
    assert shop.journal_sql(OWN_SLICES) == [(1, "outbox", 10), (1, "warehouse", 10)]

    shop.judged(1)
    assert counted == [[], [], [1], [1]]
    assert shop.journal_sql(OWN_SLICES)[-2:] == [(2, "outbox", 4), (2, "warehouse", 4)]


def test_rows_of_the_infinite_past_are_counted_in_the_table(shop: ReconciledShop) -> None:
    """Read, they have no time that says whether they are of the first window; they count, as when they are counted
    later on: otherwise the next window would find the slice grown."""
    shop.trade(orders(range(10)))
    shop.sql("update outbox set at = '-infinity' where id = 'O1'; update warehouse set at = null where id = 'O2'")

    shop.judged(0)
    assert shop.journal_sql(OWN_SLICES) == [(1, "outbox", 10), (1, "warehouse", 9)]

    shop.trade(orders(range(20, 24), 1))
    shop.judged(1)
    assert shop.journal_sql("select kind from makewhole.incident where kind like 'slice%'") == []
