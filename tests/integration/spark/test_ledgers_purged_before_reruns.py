"""Test windows that are run again after rows of their ledger were purged: what an earlier revision read stays known."""

from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.journal.database import connect
from makewhole.key_index.status import TopicIndex, compact
from makewhole.lake.storage import Storage
from makewhole.model.window import WindowState
from tests.integration.spark.test_purged_ledgers import HOP, describe, write_both
from tests.integration.spark.test_survivors import repair
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP
from tests.world.windows import Found, ReconciledShop

pytestmark = pytest.mark.integration


def certified_days(shop: ReconciledShop, number: int) -> list[Order]:
    """Load and certify some days of six orders each."""
    describe(shop)
    days = [orders(range(day * 100, day * 100 + 6), day) for day in range(number)]
    for day, made in enumerate(days):
        write_both(shop, made)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    return [order for made in days for order in made]


def run_again(shop: ReconciledShop, day: int = 0) -> None:
    again = shop.judge_and_ask_the_gate(day)
    assert shop.found(again, HOP) == {}
    shop.certify(again)


def touched_rows(shop: ReconciledShop, before: list[Order], day: int) -> Found:
    """Judge a day in which the rows of the first one were touched, and repair it: all rows stay but an unmatched one.
    Return what was found."""
    made, number = orders(range(day * 100, day * 100 + 6), day), day * 100 + 77
    shop.sql("update warehouse set at = at + %s * interval '1 day' where at < '2025-03-02'", day)
    write_both(shop, made)
    shop.write("warehouse", orders([number], day))
    context = shop.judge_and_ask_the_gate(day)
    repair(shop, context)
    assert {row[0] for row in shop.sql("select id from warehouse")} == {order["id"] for order in (*before, *made)}
    return shop.found(context, HOP)


def unmatched(day: int) -> Found:
    return {f"O{day}77": ("unexpected", "not_in_source")}


@pytest.mark.parametrize("purged", ["id in ('O1', 'O4')", "at < '2025-03-02'"])
def test_rows_that_were_purged_before_their_window_was_run_again_stay(shop: ReconciledShop, purged: str) -> None:
    made = certified_days(shop, 2)
    shop.sql(f"delete from outbox where {purged}")
    run_again(shop)
    run_again(shop)

    assert touched_rows(shop, made, 2) == unmatched(2)


def test_rows_stay_known_from_a_merged_run_in_another_number_of_buckets(shop: ReconciledShop) -> None:
    made = certified_days(shop, 4)
    assert (merge(shop).runs, merge(shop).rows) == (1, 24)
    shop.sql("delete from outbox where at < '2025-03-02'")
    shop.write("outbox", made[2:3])
    shop.buckets = 4
    run_again(shop)
    shop.buckets = None
    index = merge(shop)
    assert (index.windows, index.runs, index.rows) == (4, 2, 24 + 6)

    assert touched_rows(shop, made, 4) == unmatched(4)


def merge(shop: ReconciledShop) -> TopicIndex:
    """Merge the index of the ledger, and remove at once what was merged."""
    with connect(shop.journal) as journal:
        [done] = compact(journal, Storage.from_environment(), shop.pipeline.name, grace=timedelta(0))
    return done.index


def test_a_row_that_was_changed_since_counts_as_the_newest_revision_read_it(shop: ReconciledShop) -> None:
    made = certified_days(shop, 2)
    shop.sql("delete from outbox where id = 'O1'")
    for table in ("outbox", "warehouse"):
        shop.sql(f"update {table} set amount = amount + 1 where id = 'O2'")
    run_again(shop)
    shop.sql("delete from outbox where id = 'O2'")

    assert touched_rows(shop, made, 2) == unmatched(2)


@pytest.mark.parametrize("lost", ["nothing", "the index"])
def test_an_index_that_is_written_again_has_what_all_revisions_read(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr("makewhole.cli.index.find_pipeline", lambda _: shop.pipeline)
    made = certified_days(shop, 2)
    shop.sql("delete from outbox where id in ('O1', 'O4')")
    run_again(shop)
    removed(shop, "index/**/*" if "the index" in lost else None)
    result = rebuilt(shop)

    assert result.exit_code == 0, result.output
    assert touched_rows(shop, made, 2) == unmatched(2)


def test_what_a_lost_snapshot_had_is_in_the_index_that_is_written_again_after_it_was_restored(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makewhole.cli.index.find_pipeline", lambda _: shop.pipeline)
    made = certified_days(shop, 2)
    shop.sql("delete from outbox where id in ('O1', 'O4')")
    run_again(shop)
    removed(shop, INDEX)
    snapshot = removed(shop, FIRST_SNAPSHOT)
    for _ in range(2):
        is_partial(rebuilt(shop))
    restore(snapshot)
    result = rebuilt(shop)

    assert result.exit_code == 0, result.output
    removed(shop, FIRST_SNAPSHOT)
    assert rebuilt(shop).exit_code == 0
    assert touched_rows(shop, made, 2) == unmatched(2)


INDEX, FIRST_SNAPSHOT = "index/outbox/window=1/**/*", "window=1/revision=1/outbox/keys/**/*"


def is_partial(result: Result) -> None:
    """Assert that the index was written without what an earlier revision read."""
    assert result.exit_code == 4
    assert (
        "neither the snapshots that earlier revisions took of outbox nor whole runs of the key index can be read for 1 "
        "window (1); all windows were written, these with what can be read. Restore the files of the snapshots and "
        "rebuild again: keys of rows that were purged before the newest revision may not be known, and what else has "
        "them is unexpected"
    ) in " ".join(result.stderr.split())


@pytest.mark.parametrize("is_snapshot_lost", [False, True])
def test_rows_that_were_purged_stay_known_where_the_run_of_their_window_was_lost_before_it_was_run_again(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, is_snapshot_lost: bool
) -> None:
    monkeypatch.setattr("makewhole.cli.index.find_pipeline", lambda _: shop.pipeline)
    made = certified_days(shop, 2)
    shop.sql("delete from outbox where id in ('O1', 'O4')")
    removed(shop, INDEX)
    if is_snapshot_lost:  # nothing else of the window needs it then
        shop.sql("delete from warehouse where id in ('O1', 'O4')")
    snapshot = removed(shop, FIRST_SNAPSHOT if is_snapshot_lost else None)
    run_again(shop)
    partial = shop.journal_sql("select number, revision from makewhole.key_run where is_partial")
    if is_snapshot_lost:
        assert partial == [(1, 2)]
        is_partial(rebuilt(shop))
        restore(snapshot)
        assert rebuilt(shop).exit_code == 0
        shop.write("warehouse", [made[1], made[4]])
    else:
        assert partial == []

    assert touched_rows(shop, made, 2) == unmatched(2)


def removed(shop: ReconciledShop, pattern: str | None) -> dict[Path, bytes]:
    """Remove files, and return their content."""
    paths = [] if pattern is None else Path(Storage.from_environment().root).glob(f"{shop.pipeline.name}/{pattern}")
    files = {path: path.read_bytes() for path in paths if path.is_file()}
    assert files or pattern is None
    for path in files:
        path.unlink()
    return files


def restore(files: dict[Path, bytes]) -> None:
    for path, content in files.items():
        path.write_bytes(content)


def rebuilt(shop: ReconciledShop) -> Result:
    return CliRunner().invoke(app, ["index", "rebuild", shop.pipeline.name], catch_exceptions=False)


def test_a_row_that_was_changed_and_purged_counts_as_it_was_read_last(shop: ReconciledShop) -> None:
    certified_days(shop, 1)
    for table in ("outbox", "warehouse"):
        shop.sql(f"update {table} set amount = amount + 1 where id = 'O2'")
    run_again(shop)
    shop.sql("delete from outbox where id = 'O2'")

    run_again(shop)


def test_the_record_of_a_row_that_was_purged_before_its_window_was_run_again_is_no_unmatched_one(
    shop: ReconciledShop,
) -> None:
    """The record came behind the end of the window of its row, and the key index has no ledger that feeds a topic."""
    made = orders(range(5))
    shop.trade(made[:4])
    shop.write("outbox", made[4:])
    first = shop.open()
    shop.send([made[4] | {"at": orders([100], 1)[0]["at"]}])
    shop.write("warehouse", made[4:])
    shop.judge(first)
    shop.validate(first)
    assert shop.certify(first).state is WindowState.CERTIFIED
    shop.sql("delete from outbox where id = 'O4'")
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED

    shop.trade(orders(range(101, 104), 1))
    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {}
    assert closed.state is WindowState.CERTIFIED
