"""Test that windows are judged by an index whose runs were merged, as by one of single runs: over real windows."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.journal.database import connect
from makewhole.key_index.status import TopicIndex, compact, indexes
from makewhole.lake.storage import Storage
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from tests.integration.spark.test_what_is_gone import pretend
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

DAYS = 4


def merge(shop: ReconciledShop) -> TopicIndex:
    """Merge, and remove at once what was merged: whoever reads a single run now fails."""
    with connect(shop.journal) as journal:
        [done] = compact(journal, Storage.from_environment(), shop.pipeline.name, grace=timedelta(0))
    return done.index


def trade_days(shop: ReconciledShop, days: int = DAYS) -> list[list[Order]]:
    """Trade and certify five orders a day, and merge their runs, as far as there are enough."""
    made = [orders(range(100 * day, 100 * day + 5), day) for day in range(days)]
    for day, of_day in enumerate(made):
        shop.trade(of_day)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    index = merge(shop)
    runs = 1 if days == DAYS else days
    assert (index.windows, index.runs, index.rows, index.unused_files) == (days, runs, 5 * days, 0)
    return made


def again(order: Order, day: int) -> Order:
    """Return a record that repeats an order on another day."""
    return {**order, "at": orders([0], day)[0]["at"]}


def test_a_repeat_is_found_with_its_place_in_a_merged_run(shop: ReconciledShop) -> None:
    made = trade_days(shop)
    shop.trade(orders(range(900, 905), DAYS))
    shop.send([again(made[0][2], DAYS)])

    context, closed = shop.whole_way(DAYS)

    assert shop.found(context, LEDGER_HOP) == {"O2": ("duplicate", "retry_without_idempotence")}
    assert shop.evidence(context, LEDGER_HOP, "O2")["elsewhere"] == ["0:2"]
    assert closed.state is WindowState.GAPS


@pytest.mark.extended
def test_a_window_is_judged_again_beside_its_own_rows_in_a_merged_run(shop: ReconciledShop) -> None:
    made = trade_days(shop)
    late = orders([177], 1)
    shop.write("outbox", late)

    context, closed = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {"O177": ("missing", "never_produced")}
    assert shop.counts(context, LEDGER_HOP).matched == 5
    assert closed.state is WindowState.GAPS
    index = merge(shop)
    assert (index.windows, index.runs) == (DAYS, 2)
    shop.trade(orders(range(900, 905), DAYS))
    shop.send([again(made[1][3], DAYS)])
    context, _ = shop.whole_way(DAYS)
    assert shop.found(context, LEDGER_HOP) == {"O103": ("duplicate", "retry_without_idempotence")}
    assert shop.evidence(context, LEDGER_HOP, "O103")["elsewhere"] == ["0:8"]


@pytest.mark.extended
def test_a_window_that_a_truncation_reached_is_left_out_of_a_merged_run(shop: ReconciledShop) -> None:
    made = trade_days(shop)
    shop.send([again(made[3][1], DAYS), again(made[3][2], DAYS)])
    shop.trade(orders(range(900, 905), DAYS))
    context = shop.open(DAYS)
    pretend(shop, context, IncidentKind.TRUNCATED, 17, 20, before_it_was_read=False, lineage=0)

    shop.judge(context)

    assert shop.found(context, LEDGER_HOP) == {
        "O301": ("duplicate", "retry_without_idempotence"),
        "O303": ("missing", "truncated"),
        "O304": ("missing", "truncated"),
    }


@pytest.mark.extended
def test_rows_of_a_former_incarnation_of_the_topic_are_distinguished_in_a_merged_run(shop: ReconciledShop) -> None:
    made = trade_days(shop, 2)
    shop.make_topic_again()
    for day in (2, 3):
        later = orders(range(100 * day, 100 * day + 5), day)
        shop.send([again(made[0][day], day)])
        shop.trade(later)
        context, _ = shop.whole_way(day)
        assert shop.found(context, LEDGER_HOP) == {}
        merge(shop)
    shop.send([again(made[0][3], 4), again(made[0][4], 4)])
    shop.trade(orders(range(400, 405), 4))
    assert merge(shop).runs == 1

    context, _ = shop.whole_way(4)

    # O3 was sent to the topic as it is on day 3; O4 only to the one that is gone.
    assert shop.found(context, LEDGER_HOP) == {"O3": ("duplicate", "retry_without_idempotence")}


@pytest.mark.extended
def test_the_command_says_what_the_index_is_and_merges_it(shop: ReconciledShop) -> None:
    name = shop.pipeline.name
    for day in range(DAYS):
        shop.trade(orders(range(100 * day, 100 * day + 5), day))
        shop.whole_way(day)

    result = CliRunner().invoke(app, ["index", "status", name, "--json"], catch_exceptions=False)
    before = json.loads(result.stdout)
    size = before["topics"][0].pop("size_bytes")
    assert before == {
        "pipeline": name,
        "topics": [
            {"point": "orders", "windows": 4, "runs": 4, "rows": 20, "files": 4, "unused_files": 0}
            | {"known_since": None}
        ],
    }
    result = CliRunner().invoke(app, ["index", "merge", name], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.startswith("orders: 1 merge, 0 unused files removed; 20 rows of 4 windows in 1 run, ")
    assert result.stdout.endswith("; 8 unused files\n")
    with connect(shop.journal) as journal:
        [index] = indexes(journal, Storage.from_environment(), name)
    assert (index.runs, index.files, index.unused_files) == (1, 1, 8)
    assert 0 < index.size_bytes < size

    result = CliRunner().invoke(app, ["index", "status", "absent"], catch_exceptions=False)
    assert result.exit_code == 2
    assert "absent has no key index: no window of it with a topic was judged." in " ".join(result.stderr.split())


def files_of(shop: ReconciledShop, pattern: str) -> list[Path]:
    return sorted(path for path in Path(Storage.from_environment().root).glob(pattern) if path.is_file())


def rebuilt(shop: ReconciledShop) -> Result:
    return CliRunner().invoke(app, ["index", "rebuild", shop.pipeline.name, "--json"], catch_exceptions=False)


@pytest.mark.extended
def test_an_index_that_was_lost_is_written_again_from_snapshots(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long: six windows are judged, and each index is written twice."""
    monkeypatch.setattr("makewhole.cli.index.find_pipeline", lambda _: shop.pipeline)
    name = shop.pipeline.name
    made = trade_days(shop)
    snapshot = files_of(shop, f"{name}/window=2/revision=1/orders/keys/**/*.parquet")
    assert snapshot
    for path in snapshot:
        path.unlink()

    document = json.loads(rebuilt(shop).stdout)
    assert document == {
        "pipeline": name,
        "topics": [{"point": "orders", "from_snapshots": DAYS - 1, "from_index": 1, "keys": 20}],
    }
    with connect(shop.journal) as journal:
        [index] = indexes(journal, Storage.from_environment(), name)
    assert (index.windows, index.runs, index.rows) == (DAYS, DAYS, 20)
    assert merge(shop).runs == 1

    for path in files_of(shop, f"{name}/index/**/*"):
        path.unlink()
    result = rebuilt(shop)
    assert result.exit_code == 4
    assert (
        f"{name}: neither the snapshots of orders nor its runs of the key index can be read for 1 window (2); the "
        "others were written. Restore its files and rebuild again; a single such window may also be run again"
    ) in " ".join(result.stderr.split())
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    document = json.loads(rebuilt(shop).stdout)
    assert document["topics"] == [{"point": "orders", "from_snapshots": DAYS, "from_index": 0, "keys": 20}]
    shop.trade(orders(range(900, 905), DAYS))
    shop.send([again(order, DAYS) for order in (made[0][2], made[1][3])])
    context, _ = shop.whole_way(DAYS)
    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O2", "O103"), ("duplicate", "retry_without_idempotence"))


@pytest.mark.extended
def test_housekeeping_merges_the_runs_of_a_pipeline(shop: ReconciledShop) -> None:
    from makewhole.orchestration.housekeeping import compact_index

    compact_index(shop.pipeline.name)  # nothing yet
    for day in range(DAYS):
        shop.trade(orders(range(100 * day, 100 * day + 5), day))
        shop.whole_way(day)
    compact_index(shop.pipeline.name)

    with connect(shop.journal) as journal:
        [index] = indexes(journal, Storage.from_environment(), shop.pipeline.name)
    assert (index.windows, index.runs, index.unused_files) == (DAYS, 1, 2 * DAYS)  # a run and its filter each
