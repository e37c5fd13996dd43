"""Test `history`: what is older is dropped from the key index, and everybody says from when on repeats are found."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.journal.database import connect
from makewhole.journal.key_index.runs import IndexedTopic, standing_runs
from makewhole.key_index.rebuild import rebuild
from makewhole.key_index.status import CompactedIndex, compact
from makewhole.lake.storage import Storage
from makewhole.model.window import WindowState
from makewhole.sql import PgConnection
from makewhole.window.configuration import reading_sha256
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from tests.integration.spark.test_index_in_levels import again
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

DAYS = 5
TWO_DAYS = timedelta(days=2)
REPEATED = ("duplicate", "retry_without_idempotence")
SINCE = "in orders a duplicate of a record from before 2025-03-04 00:00 UTC would not be found"


def keep_house(shop: ReconciledShop, history: timedelta | None = TWO_DAYS) -> CompactedIndex:
    with connect(shop.journal) as journal:
        [done] = compact(journal, Storage.from_environment(), "shop", grace=timedelta(0), history=history)
    return done


def trade_days(shop: ReconciledShop, *, history: str | None) -> list[list[Order]]:
    """Trade and certify five orders a day, and close each day's window."""
    shop.describe(history=history)
    made = [orders(range(100 * day, 100 * day + 5), day) for day in range(DAYS)]
    for day, of_day in enumerate(made):
        shop.trade(of_day)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    return made


def repeat_each_day(shop: ReconciledShop, made: list[list[Order]]) -> None:
    """Send an order of each day again, on the day after, beside orders of its own."""
    shop.send([again(of_day[day], DAYS) for day, of_day in enumerate(made)])
    shop.trade(orders(range(900, 905), DAYS))


def limits(shop: ReconciledShop, day: int) -> list[str]:
    """Return what the certificate of a day cannot exclude."""
    [(body,)] = shop.journal_sql("select body from makewhole.certificate where number = %s", day + 1)
    return [limit["message"] for limit in body["reach"]["cannot_exclude"] if limit["limit"] == "older_duplicates"]


def test_without_a_history_every_repeat_is_found_and_no_limit_is_reported(shop: ReconciledShop) -> None:
    made = trade_days(shop, history=None)
    assert keep_house(shop, None).dropped_windows == 0
    repeat_each_day(shop, made)

    context, _ = shop.whole_way(DAYS)

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O0", "O101", "O202", "O303", "O404"), REPEATED)
    assert limits(shop, DAYS - 1) == []


@pytest.mark.parametrize(
    "is_kept",
    [pytest.param(False, marks=pytest.mark.extended), True],
    ids=["before housekeeping", "after housekeeping"],
)
def test_a_repeat_of_what_is_older_than_the_history_is_not_found_and_the_certificate_says_so(
    shop: ReconciledShop, is_kept: bool
) -> None:
    made = trade_days(shop, history="2d")
    assert limits(shop, 1) == []
    if is_kept:
        done = keep_house(shop)
        assert (done.dropped_windows, done.index.windows, done.index.rows) == (2, 3, 15)
        assert keep_house(shop).dropped_windows == 0
    repeat_each_day(shop, made)

    context, _ = shop.whole_way(DAYS)

    # The window begins on day 5; what ended by day 3 is older than two days.
    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O303", "O404"), REPEATED)
    assert shop.counts(context, STORE_HOP).unexpected == 0
    shop.trade(orders(range(950, 955), DAYS + 1))
    _, closed = shop.whole_way(DAYS + 1)
    assert closed.state is WindowState.CERTIFIED
    assert limits(shop, DAYS + 1) == [SINCE.replace("03-04", "03-05")]


@pytest.mark.extended
def test_the_files_of_what_was_dropped_are_removed_and_a_merged_run_is_written_again_without_it(
    shop: ReconciledShop,
) -> None:
    trade_days(shop, history="2d")
    merged = keep_house(shop, None)
    assert (merged.merges, merged.index.runs, merged.index.rows) == (1, 1, 25)

    done = keep_house(shop, TWO_DAYS)
    assert (done.dropped_windows, done.merges, done.index.windows, done.index.rows) == (2, 0, 3, 25)
    done = keep_house(shop, TWO_DAYS / 2)

    assert (done.dropped_windows, done.merges, done.index.runs, done.index.windows) == (1, 1, 1, 2)
    assert (done.index.rows, done.index.unused_files) == (10, 0)
    assert done.index.known_since is not None and done.index.known_since.isoformat() == "2025-03-04T00:00:00+00:00"


@pytest.mark.extended
def test_an_older_window_that_is_judged_again_says_what_is_known_no_more(shop: ReconciledShop) -> None:
    made = trade_days(shop, history="2d")
    keep_house(shop)
    shop.send([again(made[0][1], 1), again(made[1][1], 1)])

    context, closed = shop.whole_way(2)

    assert closed.state is WindowState.CERTIFIED
    assert shop.found(context, LEDGER_HOP) == {}
    [(body,)] = shop.journal_sql("select body from makewhole.certificate where number = 3 and revision = 2")
    messages = [limit["message"] for limit in body["reach"]["cannot_exclude"] if limit["limit"] == "older_duplicates"]
    assert messages == [SINCE.replace("03-04", "03-03")]
    assert keep_house(shop).index.rows == 15


@pytest.mark.extended
def test_a_window_that_was_dropped_itself_does_not_call_missing_what_a_dropped_one_may_have(
    shop: ReconciledShop,
) -> None:
    trade_days(shop, history="2d")
    keep_house(shop)
    shop.write("outbox", orders([177], 1))

    context, closed = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {"O177": ("undecidable", "expired")}
    assert closed.state is WindowState.NOT_KNOWN


@pytest.mark.extended
def test_what_lies_behind_the_limit_may_belong_to_a_record_of_the_last_window_that_was_dropped(
    shop: ReconciledShop,
) -> None:
    """The record of O250 came at the end of the second day, its rows bear times of the third. What bears a
    time later than `late` and `pending.max_age` allow is judged as ever."""
    shop.describe(history="2d", late="6h", max_age="6h")
    [row] = orders([250], 2)
    [record] = orders([999], 1)
    made = [orders(range(100 * day, 100 * day + 5), day) for day in range(DAYS)]
    for day, of_day in enumerate(made):
        shop.trade(of_day)
        if day == 1:
            shop.send([{**row, "at": record["at"]}])
            for table in ("outbox", "warehouse"):
                shop.write(table, [row])
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    assert keep_house(shop).dropped_windows == 2
    behind = [{**order, "at": orders([720 + number], 2)[0]["at"]} for number, order in enumerate(orders([260, 261], 2))]
    shop.write("outbox", behind[:1])
    shop.write("warehouse", behind[1:])

    context, closed = shop.whole_way(2)

    undecidable = ("undecidable", "expired")
    assert shop.found(context, LEDGER_HOP) == {"O250": undecidable, "O260": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O250": undecidable, "O261": ("unexpected", "not_in_source")}
    assert closed.state is WindowState.GAPS


@pytest.mark.extended
def test_what_was_read_before_the_file_had_the_line_was_read_as_what_comes_after(shop: ReconciledShop) -> None:
    """How far back keys are known, and when an absence counts, say nothing of the values of a record."""
    trade_days(shop, history=None)
    shop.describe(history="2d")
    shop.trade(orders(range(900, 905), DAYS))
    context, _ = shop.whole_way(DAYS)

    with connect(shop.journal) as journal:
        neighbours = NeighbouringWindows(journal=journal, context=context, manifests=shop.manifests(context))
        before = neighbours.right_before
        assert before is not None
        assert neighbours.read_with_other_configuration(before, "orders") is None
        for since, settle, is_known in (
            ("2d", "0s", True),
            ("3d", "1s", True),
            (None, "0s", True),
            ("2d", "0s", False),
        ):
            shop.describe(history=since, settle=settle)
            if not is_known:
                shop.file.write_text(shop.file.read_text().replace("decimal(8,2)", "decimal(9,2)"))
            rebuild(journal, Storage.from_environment(), shop.pipeline, reading_sha256(shop.pipeline))
            assert keeps_values(journal) is is_known


def keeps_values(journal: PgConnection) -> bool:
    """Return whether the key index of the topic knows the values of every record."""
    storage = Storage.from_environment()
    runs = standing_runs(journal, IndexedTopic(pipeline="shop", point="orders"))
    frames = [storage.read_parquet([path]) for run in runs for path in run.files.values()]
    assert frames
    return all(frame is not None and not frame["row_hash"].null_count() for frame in frames)


@pytest.mark.extended
def test_an_index_is_written_again_without_what_was_dropped(shop: ReconciledShop) -> None:
    trade_days(shop, history="2d")
    keep_house(shop)
    for path in Path(Storage.from_environment().root).glob("shop/window=1/revision=1/orders/keys/**/*.parquet"):
        path.unlink()

    result = CliRunner().invoke(app, ["index", "rebuild", "shop", "--json"], catch_exceptions=False)

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["topics"] == [
        {"point": "orders", "from_snapshots": 3, "from_index": 0, "keys": 15}
    ]
    shop.describe(history=None)
    result = CliRunner().invoke(app, ["index", "rebuild", "shop", "--json"], catch_exceptions=False)
    assert json.loads(result.stdout)["topics"] == [
        {"point": "orders", "from_snapshots": 4, "from_index": 0, "keys": 20}
    ]
    done = keep_house(shop, None)
    assert (done.index.windows, done.index.rows) == (4, 20)
    assert done.index.known_since is not None and done.index.known_since.isoformat() == "2025-03-02T00:00:00+00:00"


def test_the_commands_say_from_when_on_keys_are_known(shop: ReconciledShop) -> None:
    trade_days(shop, history="2d")

    result = CliRunner().invoke(app, ["index", "merge", "shop"], catch_exceptions=False)
    assert result.stdout.startswith(
        "orders: 2 old windows dropped, 0 merges, 0 unused files removed; 15 rows of 3 windows"
    )
    sentence = "a duplicate of a record from before 2025-03-03 00:00 UTC would not be found"
    assert " ".join(result.stdout.split()).endswith(sentence)
    result = CliRunner().invoke(app, ["index", "status", "shop", "--json"], catch_exceptions=False)
    assert json.loads(result.stdout)["topics"][0]["known_since"] == "2025-03-03T00:00:00+00:00"
    result = CliRunner().invoke(app, ["windows", "shop", "--window", "5"], catch_exceptions=False)
    assert f"in orders {sentence}" in " ".join(result.stdout.split())
