"""Test rows that come to a table after the window of their time was judged: the window that sees them judges them."""

from datetime import timedelta

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot import census
from tests.world.orders import BORN, Order, orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def sentences(shop: ReconciledShop, context: WindowContext) -> list[str]:
    """Return what the window's incidents say."""
    with connect(shop.journal) as journal:
        return [incident_sentence(incident) for incident in incidents.of(journal, context.window)]


def days(shop: ReconciledShop, *numbers: int) -> WindowContext:
    """Trade on these days, and have each of them certified; return the last window."""
    for day in numbers:
        shop.trade(orders(range(day * 100, day * 100 + 20), day))
        context, closed = shop.whole_way(day)
        assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    return context


def day_with(shop: ReconciledShop, day: int) -> tuple[WindowContext, WindowState]:
    """Trade on a day and judge it."""
    shop.trade(orders(range(day * 100, day * 100 + 20), day))
    context, closed = shop.whole_way(day)
    return context, closed.state


def renamed(order: Order, name: str) -> Order:
    return {**order, "id": name}


@pytest.mark.parametrize("is_upsert", [pytest.param(False, marks=pytest.mark.extended), True], ids=["event", "upsert"])
def test_rows_of_a_store_that_come_late_are_judged_in_the_window_that_sees_them(
    shop: ReconciledShop, is_upsert: bool
) -> None:
    shop.describe(is_upsert=is_upsert)
    days(shop, 0)
    old = orders(range(20))
    shop.write("warehouse", [renamed(old[3], "unmatched"), old[5]])

    context, state = day_with(shop, 1)

    assert shop.found(context, STORE_HOP) == {
        "unmatched": ("unexpected", "not_in_source"),
        "O5": ("duplicate", "written_before_committed"),
    }
    assert shop.found(context, LEDGER_HOP) == {}
    assert state is WindowState.GAPS
    counts = shop.counts(context, STORE_HOP)
    assert (counts.source_keys, counts.matched, counts.unexpected, counts.duplicate) == (20, 20, 1, 1)
    assert sentences(shop, context) == []

    third, state = day_with(shop, 2)
    assert (shop.found(third, STORE_HOP), sentences(shop, third), state) == ({}, [], WindowState.CERTIFIED)


def test_a_late_row_of_a_key_that_was_missing_is_fine(shop: ReconciledShop) -> None:
    made = orders(range(20))
    shop.trade(made, unloaded=made[7:8])
    first, closed = shop.whole_way(0)
    assert (shop.found(first, STORE_HOP), closed.state) == ({"O7": ("missing", "lost_after_topic")}, WindowState.GAPS)
    shop.write("warehouse", made[7:8])

    context, state = day_with(shop, 1)

    assert (shop.found(context, STORE_HOP), state) == ({}, WindowState.CERTIFIED)
    assert shop.counts(context, STORE_HOP).source_keys == 20


def test_an_old_row_that_is_changed_is_not_a_new_one(shop: ReconciledShop) -> None:
    days(shop, 0)
    shop.sql("update warehouse set region = 'XX'")
    shop.sql("update outbox set region = 'XX'")

    context, state = day_with(shop, 1)

    assert (shop.found(context, STORE_HOP), shop.found(context, LEDGER_HOP)) == ({}, {})
    assert (state, sentences(shop, context)) == (WindowState.CERTIFIED, [])


def test_what_an_earlier_window_reported_is_not_reported_again_when_the_row_is_touched(shop: ReconciledShop) -> None:
    made = orders(range(20))
    shop.trade(made)
    shop.write("warehouse", [made[5], renamed(made[3], "unmatched"), made[6]])
    first, _ = shop.whole_way(0)
    repeated = ("duplicate", "written_before_committed")
    assert shop.found(first, STORE_HOP) == {
        "O5": repeated,
        "O6": repeated,
        "unmatched": ("unexpected", "not_in_source"),
    }
    shop.sql("update warehouse set region = 'XX' where id in ('O5', 'O6', 'unmatched')")
    shop.write("warehouse", [{**made[6], "at": orders([106], 1)[0]["at"]}])

    second, state = day_with(shop, 1)

    # A row of the day itself says something new.
    assert (shop.found(second, STORE_HOP), state) == ({"O6": repeated}, WindowState.GAPS)
    assert shop.counts(second, STORE_HOP).matched == 20


def test_a_row_that_was_put_aside_and_comes_again_is_found_again(shop: ReconciledShop) -> None:
    """Find a row that comes after the repair of the window before: what was known of its key then is settled."""
    shop.describe(hop={"compensation": "{unexpected: quarantine}"})
    made = orders(range(20))
    shop.trade(made)
    shop.write("warehouse", [renamed(made[3], "unmatched")])
    first = shop.judge_and_ask_the_gate()
    plan_window(first)
    compensate_window(first, lambda _: None)
    verify_window(first, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(first) == {"unmatched": "repaired"}
    assert shop.certify(first).state is WindowState.CERTIFIED
    shop.write("warehouse", [renamed(made[3], "unmatched")])

    second, state = day_with(shop, 1)

    assert (shop.found(second, STORE_HOP), state) == ({"unmatched": ("unexpected", "not_in_source")}, WindowState.GAPS)


def test_rows_of_keys_that_had_vanished_are_judged_when_a_backup_brings_them_twice(shop: ReconciledShop) -> None:
    """A row that is there once and right is nothing; what was said of its key was about its absence."""
    days(shop, 0)
    shop.sql("delete from warehouse where id in ('O3', 'O4', 'O5')")
    first, closed = shop.whole_way(0)
    assert {verdict for verdict, _ in shop.found(first, STORE_HOP).values()} == {"vanished"}
    assert closed.state is WindowState.CERTIFIED
    old = orders(range(20))
    shop.write("warehouse", [old[3], old[3], old[4], {**old[5], "amount": 777}])

    second, state = day_with(shop, 1)

    assert shop.found(second, STORE_HOP) == {
        "O3": ("duplicate", "written_before_committed"),
        "O5": ("mismatched", "value_differs"),
    }
    assert state is WindowState.GAPS


def test_rows_of_keys_that_were_erased_are_judged_when_they_come_twice(shop: ReconciledShop) -> None:
    shop.sql("create table erasures (order_id text primary key)")
    shop.describe(
        more_points={"warehouse": store("db", "warehouse", key="id", erased="{table: erasures, key: order_id}")}
    )
    old = orders(range(20))
    shop.sql("insert into erasures values ('O3'), ('O4')")
    shop.trade(old, unloaded=old[3:5])
    first, closed = shop.whole_way(0)
    assert shop.found(first, STORE_HOP) == dict.fromkeys(("O3", "O4"), ("erased", "erased_on_purpose"))
    assert closed.state is WindowState.CERTIFIED
    shop.write("warehouse", [old[3], old[3], old[4]])

    second, state = day_with(shop, 1)

    assert shop.found(second, STORE_HOP) == {"O3": ("duplicate", "written_before_committed")}
    assert state is WindowState.GAPS


@pytest.mark.extended
def test_a_changed_row_is_no_unmatched_row_when_the_ledger_has_been_purged(shop: ReconciledShop) -> None:
    shop.describe(more_points={"archive": store("db", "archive")}, more_hops=[{"from": "outbox", "to": "archive"}])
    shop.sql("create table archive (like warehouse)")
    old = orders(range(20))
    shop.write("archive", old)
    days(shop, 0)
    shop.sql("delete from outbox where id in ('O3', 'O4')")
    shop.sql("update archive set region = 'XX' where id in ('O3', 'O4')")
    shop.write("archive", [old[4], renamed(old[5], "unmatched")])
    shop.write("archive", orders(range(100, 120), 1))

    context, _ = day_with(shop, 1)

    assert shop.found(context, "outbox→archive") == {
        "O4": ("duplicate", "written_before_committed"),
        "unmatched": ("unexpected", "not_in_source"),
    }


@pytest.mark.parametrize("late", [pytest.param("1d", marks=pytest.mark.extended), "0s"])
def test_rows_that_come_later_than_late_are_found_by_counting(shop: ReconciledShop, late: str) -> None:
    shop.file.write_text(shop.file.read_text().replace("settle:", f"late: {late}\nsettle:"))
    days(shop, 0, 1, 2)
    old = orders(range(20))
    shop.write("warehouse", [renamed(old[3], "unmatched"), old[5]])
    shop.write("outbox", [renamed(old[8], "unsent")])

    context, state = day_with(shop, 3)

    assert shop.found(context, STORE_HOP) == {
        "unmatched": ("unexpected", "not_in_source"),
        "O5": ("duplicate", "written_before_committed"),
    }
    assert shop.found(context, LEDGER_HOP) == {"unsent": ("missing", "never_produced")}
    assert state is WindowState.GAPS
    assert sentences(shop, context) == [
        "1 row came to outbox (outbox) later than `late` reaches, with the times of window 1 (20 → 21)",
        "2 rows came to warehouse (warehouse) later than `late` reaches, with the times of window 1 (20 → 22)",
    ]
    again, _ = shop.whole_way(3)
    assert (again.window.revision, shop.found(again, STORE_HOP)) == (2, shop.found(context, STORE_HOP))
    fourth, state = day_with(shop, 4)
    assert (shop.found(fourth, STORE_HOP), sentences(shop, fourth), state) == ({}, [], WindowState.CERTIFIED)


def test_rows_that_are_gone_are_reported_once_and_block_nothing(shop: ReconciledShop) -> None:
    days(shop, 0, 1)
    shop.sql("delete from warehouse where id in ('O1', 'O2', 'O101')")

    context, state = day_with(shop, 2)

    assert (shop.found(context, STORE_HOP), state) == ({}, WindowState.CERTIFIED)
    assert sentences(shop, context) == [
        "3 rows of warehouse (warehouse) that earlier windows had counted are gone, with the times of window 1 "
        "(20 → 18), window 2 (20 → 19)"
    ]
    third, state = day_with(shop, 3)
    assert (sentences(shop, third), state) == ([], WindowState.CERTIFIED)


@pytest.mark.extended
def test_versions_that_leave_their_slices_are_not_reported(shop: ReconciledShop) -> None:
    shop.describe(is_upsert=True)
    made = orders(range(20))
    shop.trade(made)
    shop.whole_way(0)
    shop.sql("delete from warehouse where id = 'O3'")
    changed = [{**order, "amount": "99.00", "at": orders([150], 1)[0]["at"]} for order in made[5:8]]
    for table in ("outbox", "warehouse"):
        shop.sql(f"delete from {table} where id in ('O5', 'O6', 'O7')")
        shop.write(table, changed)
    shop.send(changed)

    context, state = day_with(shop, 1)

    assert (sentences(shop, context), shop.found(context, STORE_HOP), state) == ([], {}, WindowState.CERTIFIED)


@pytest.mark.extended
def test_rows_that_came_to_a_slice_from_which_others_were_purged_are_judged(shop: ReconciledShop) -> None:
    days(shop, 0, 1, 2)
    shop.sql("delete from warehouse where id in ('O1', 'O2')")
    shop.write("warehouse", [renamed(orders([3])[0], "unmatched")])

    context, _ = day_with(shop, 3)

    assert shop.found(context, STORE_HOP) == {"unmatched": ("unexpected", "not_in_source")}
    assert sentences(shop, context) == [
        "1 row of warehouse (warehouse) that earlier windows had counted are gone, with the times of window 1 (20 → 19)"
    ]


def test_a_large_table_without_an_index_on_its_time_is_reported(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "BYTES_WITHOUT_INDEX", 0)
    shop.sql("create index on outbox (at)")

    context = days(shop, 0)

    assert sentences(shop, context) == [
        "no index of warehouse (warehouse) begins with at: every window reads the whole table"
    ]


@pytest.mark.extended
def test_a_late_ledger_row_whose_record_was_sent_long_before_is_not_missing(shop: ReconciledShop) -> None:
    made = orders(range(20))
    shop.send(made)
    shop.write("warehouse", made)
    shop.write("outbox", made[:15])
    first, _ = shop.whole_way(0)
    assert shop.found(first, LEDGER_HOP) == dict.fromkeys(
        (f"O{number}" for number in range(15, 20)), ("unexpected", "not_in_source")
    )
    day_with(shop, 1)
    day_with(shop, 2)
    shop.write("outbox", made[15:])

    context, state = day_with(shop, 3)

    assert (shop.found(context, LEDGER_HOP), state) == ({}, WindowState.CERTIFIED)
    assert shop.counts(context, LEDGER_HOP).matched == 25


@pytest.mark.parametrize("ids", [pytest.param("higher", marks=pytest.mark.extended), "lower"])
def test_a_restored_table_whose_transaction_ids_say_nothing_is_known_by_its_rows(
    shop: ReconciledShop, ids: str
) -> None:
    days(shop, 0, 1)
    if ids == "higher":  # every row looks new
        shop.sql("create table restored as select * from warehouse")
        shop.sql("drop table warehouse")
        shop.sql("alter table restored rename to warehouse")
    else:  # every row looks old
        far = "4000000000:4000000000:"
        shop.journal_sql(
            "update makewhole.snapshot set manifest = jsonb_set(manifest, '{pg_snapshot}', to_jsonb(%s::text)) "
            "where manifest ? 'pg_snapshot'",
            far,
        )
    shop.write("warehouse", [renamed(orders([3])[0], "ancient"), renamed(orders([103], 1)[0], "unmatched")])

    context, state = day_with(shop, 2)

    assert shop.found(context, STORE_HOP) == dict.fromkeys(("ancient", "unmatched"), ("unexpected", "not_in_source"))
    assert state is WindowState.GAPS
    assert shop.counts(context, STORE_HOP).matched == 20


def test_slices_of_windows_from_before_there_was_a_census_are_counted_once(shop: ReconciledShop) -> None:
    days(shop, 0, 1)
    shop.journal_sql("delete from makewhole.slice_count")
    shop.write("warehouse", [renamed(orders([3])[0], "unmatched")])

    context, state = day_with(shop, 2)

    assert shop.found(context, STORE_HOP) == {"unmatched": ("unexpected", "not_in_source")}
    assert sentences(shop, context) == [
        "the rows of outbox (outbox) with the times of 2 earlier windows were counted for the first time",
        "the rows of warehouse (warehouse) with the times of 2 earlier windows were counted for the first time",
    ]
    third, state = day_with(shop, 3)
    assert (sentences(shop, third), state) == ([], WindowState.CERTIFIED)


def test_late_rows_from_before_a_log_that_lost_its_beginning_prove_nothing(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    shop.trade(orders(range(40)))
    shop.delete_records({0: 40})
    shop.trade(orders(range(100, 120)))
    shop.whole_way(0)
    shop.write("outbox", orders([50]))
    shop.write("warehouse", orders([51, 150]))

    shop.trade(orders(range(200, 220), 1))
    context, closed = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {}
    assert shop.found(context, STORE_HOP) == {"O150": ("unexpected", "not_in_source")}
    assert [shop.counts(context, hop).before_baseline for hop in (LEDGER_HOP, STORE_HOP)] == [1, 1]
    assert closed.state is WindowState.GAPS


def test_late_rows_that_are_older_than_the_log_are_a_question_as_in_its_first_window(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    shop.trade(orders(range(100, 120)))
    _, closed = shop.whole_way(0)
    assert closed.state is WindowState.CERTIFIED
    shop.write("outbox", orders([50]))
    shop.write("warehouse", orders([51]))

    shop.trade(orders(range(200, 220), 1))
    context, closed = shop.whole_way(1)

    older = ("undecidable", "older_than_log")
    assert (shop.found(context, LEDGER_HOP), shop.found(context, STORE_HOP)) == ({"O50": older}, {"O51": older})
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None and "on outbox→orders, orders→warehouse 2 keys are older" in closed.reason


@pytest.mark.extended
def test_late_rows_are_looked_for_in_the_log_before_the_first_window(shop: ReconciledShop) -> None:
    noon = BORN + timedelta(hours=12)

    def after(minutes: int, number: int) -> Order:
        return {**orders([number])[0], "at": (noon + timedelta(minutes=minutes)).isoformat()}

    shop.describe(start=noon.isoformat())
    shop.send([after(-1, 0), after(-1, 1), after(5, 2)])
    shop.write("outbox", [after(5, 2)])
    shop.write("warehouse", [after(6, 2)])
    first, closed = shop.whole_way(0)
    assert (first.window.ranges["orders"][0].lo, closed.state) == (2, WindowState.CERTIFIED)
    shop.write("outbox", [after(1, 0), after(1, 10)])
    shop.write("warehouse", [after(2, 1), after(2, 11)])

    shop.trade(orders(range(200, 220), 1))
    context, _ = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {"O10": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O11": ("unexpected", "not_in_source")}
