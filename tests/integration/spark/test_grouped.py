"""Test a hop on which the lines of an order become one row: what it counts and adds up, window by window."""

import json
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.spark.test_judged_keys import alone, verdicts
from tests.world.environment import set_connection
from tests.world.order_lines import OrderLines, moment
from tests.world.rows_of_totals import RowsOfTotals, TotalsInFiles, TotalsInIceberg, TotalsRow
from tests.world.shop import STORE_HOP
from tests.world.topics import admin_client, delete_records, left_open, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture
def lines(shop: ReconciledShop) -> OrderLines:
    """The shop, with lines of orders and a row for each order."""
    made = OrderLines(shop=shop)
    shop.sql("drop table if exists warehouse")
    made.make_table()
    made.describe()
    return made


def found(lines: OrderLines, context: WindowContext) -> dict[str, tuple[str, str]]:
    return lines.shop.found(context, STORE_HOP)


def test_rows_hold_what_their_records_add_up_to(lines: OrderLines) -> None:
    """Right rows, and every mistake that one window shows; the sums are exact, whatever form the amounts have."""
    for name in ("right", "short", "again", "gone", "twice", "odd", "null", "both"):
        lines.send(lines.line(name, "1", 0.1), lines.line(name, "2", "0.20"), lines.line(name, "3", -7))
    lines.send(lines.line("right", "2", 0.2), lines.line("again", "2", "0.2"), lines.line("both", "2", 9))
    lines.send(lines.line("empty", "1", None), lines.line("unnamed", None, 1), lines.line("fine", "1", "1.005"))
    lines.send(lines.line("absent", "1", None))
    for name in ("right", "twice", "twice", "both"):
        lines.row(name, 3, "-6.70")
    lines.row("short", 2, "-6.90")
    lines.row("again", 4, "-6.50")
    lines.row("odd", 3, "-6.71")
    lines.row("null", None, None)
    lines.row("stray", 1, "1")
    lines.row("empty", 1, None)
    lines.row("unnamed", 1, "1")
    lines.row("fine", 1, "1.01")
    context = lines.shop.judge_and_ask_the_gate()
    assert found(lines, context) == {
        "short": ("mismatched", "record_not_counted"),
        "again": ("mismatched", "resend_counted"),
        "gone": ("missing", "lost_after_topic"),
        "twice": ("duplicate", "several_rows"),
        "odd": ("mismatched", "value_differs"),
        "null": ("mismatched", "value_differs"),
        "both": ("conflict", "source_contradicts_itself"),
        "stray": ("unexpected", "not_in_source"),
        "empty": ("undecidable", "no_amount"),
        "unnamed": ("undecidable", "no_amount"),
        "fine": ("undecidable", "no_amount"),
        "absent": ("missing", "lost_after_topic"),
    }
    evidence = lines.shop.evidence(context, STORE_HOP, "short")
    assert evidence["group"] == {
        "records": 3,
        "expected": {"lines": "3", "total": "-6.70"},
        "found": {"lines": "2", "total": "-6.90"},
        "may_be": [evidence["source"][1]["place"]],
    }
    assert evidence["columns"] == {
        "lines": {"source": "3", "target": "2"},
        "total": {"source": "-6.70", "target": "-6.90"},
    }
    again = lines.shop.evidence(context, STORE_HOP, "again")["group"]
    assert again["may_be"] == again["sent_again"]
    assert len(again["may_be"]) == 1


def test_a_window_of_right_rows_is_certified(lines: OrderLines) -> None:
    lines.send(*(lines.line(f"o{number % 50}", f"{number}", f"{number}.37") for number in range(500)))
    for number in range(50):
        total = sum(Decimal(f"{at}.37") for at in range(number, 500, 50))
        lines.row(f"o{number}", 10, str(total))
    context, closed = lines.shop.whole_way()
    assert (found(lines, context), closed.state) == ({}, WindowState.CERTIFIED)
    counts = lines.shop.counts(context, STORE_HOP)
    assert (counts.matched, counts.source_keys, counts.source_rows, counts.target_rows) == (50, 50, 500, 50)


def test_each_record_counts_where_it_is_known_by_its_position(lines: OrderLines) -> None:
    lines.describe(identity="position")
    lines.send(lines.line("A", "1", 1), lines.line("A", "1", 1), lines.line("B", None, 2), lines.line("B", "x", 2))
    lines.row("A", 2, "2")
    lines.row("B", 1, "2")
    assert found(lines, lines.shop.judged()) == {"B": ("mismatched", "record_not_counted")}


def test_a_key_that_continues_is_judged_when_all_its_records_are_there(lines: OrderLines) -> None:
    """Handed over by name from window to window, with the records of all of them: the row is held to the whole."""
    for name in ("whole", "short", "again", "ahead"):
        lines.send(lines.line(name, "1", 1), lines.line(name, "2", 2))
    for name in ("whole", "short", "again"):
        lines.send(lines.line(name, "3", 4, day=1))
    lines.send(lines.line("again", "2", 2, day=1), lines.line("next", "1", 1, day=1))
    for name in ("whole", "short", "again"):
        lines.send(lines.line(name, "4", 8, day=2))
    lines.row("whole", 4, "15")
    lines.row("short", 3, "11")
    lines.row("again", 5, "17")
    lines.row("ahead", 2, "3", day=1)
    lines.row("next", 1, "1", day=1)
    for day in (0, 1):
        context, closed = lines.shop.whole_way(day)
        assert found(lines, context) == dict.fromkeys(("whole", "short", "again"), ("pending", "key_continues"))
        assert closed.state is WindowState.CERTIFIED
    evidence = lines.shop.evidence(context, STORE_HOP, "whole")
    assert (evidence["group"]["records"], len(evidence["records_after"])) == (3, 1)
    context, closed = lines.shop.whole_way(2)
    assert found(lines, context) == {
        "short": ("mismatched", "record_not_counted"),
        "again": ("mismatched", "resend_counted"),
    }
    assert closed.state is WindowState.GAPS


def test_a_late_record_of_a_key_that_was_judged_leaves_it_undecidable(lines: OrderLines) -> None:
    """The records of the window alone do not decide its row, whether or not the two agree."""
    for name in ("agrees", "differs", "same", "gone"):
        lines.send(lines.line(name, "1", 1))
        lines.row(name, 1, "1")
    lines.row("whose", 1, "1", day=1)
    assert found(lines, lines.shop.judged()) == {}
    for name in ("agrees", "differs", "gone"):
        lines.send(lines.line(name, "2", 1, day=1))
    lines.send(lines.line("same", "1", 1, day=1), lines.line("new", "1", 1, day=1))
    lines.shop.sql("update warehouse set lines = 2, total = 2 where id = 'differs'")
    lines.shop.sql("update warehouse set at = at + interval '1 day' where id in ('agrees', 'same')")
    lines.shop.sql("delete from warehouse where id = 'gone'")
    lines.row("new", 1, "1", day=1)
    assert found(lines, lines.shop.judged(1)) == {
        "agrees": ("undecidable", "key_not_whole"),
        "differs": ("undecidable", "key_not_whole"),
        "same": ("undecidable", "key_not_whole"),
        "gone": ("missing", "lost_after_topic"),
        "whose": ("unexpected", "not_in_source"),
    }
    of_both = ("agrees", "differs", "same", "gone")
    assert found(lines, lines.shop.judged(0)) == dict.fromkeys(of_both, ("pending", "key_continues"))


def test_a_record_in_an_open_transaction_keeps_its_key_from_being_judged(lines: OrderLines) -> None:
    lines.send(*(lines.line(name, "1", 1) for name in ("open", "aborted", "read", "other")))
    for name in ("open", "aborted", "other"):
        lines.row(name, 1, "1")
    lines.row("read", 2, "3")
    client = producer(lines.shop.bootstrap, **{"transactional.id": lines.shop.topic})
    client.init_transactions(30)
    client.begin_transaction()
    for name in ("aborted", "read"):
        client.produce(lines.shop.topic, json.dumps(lines.line(name, "2", 2)).encode(), timestamp=moment(0))
    client.flush(30)
    client.abort_transaction(30)
    client.begin_transaction()
    client.produce(lines.shop.topic, json.dumps(lines.line("open", "2", 2)).encode(), timestamp=moment(1))
    client.flush(30)
    left_open(lines.shop.bootstrap, lines.shop.topic, 1)
    context = lines.shop.judged()
    assert found(lines, context) == {
        "open": ("pending", "key_continues"),
        "read": ("mismatched", "read_uncommitted"),
    }
    client.commit_transaction(30)
    assert found(lines, lines.shop.judged(1)) == {"open": ("mismatched", "record_not_counted")}


def test_a_key_that_continues_for_too_long_is_undecidable(lines: OrderLines) -> None:
    lines.describe(max_age="1s")
    lines.send(lines.line("long", "1", 1), lines.line("long", "2", 1, day=1), lines.line("long", "3", 1, day=2))
    lines.row("long", 3, "3")
    assert found(lines, lines.shop.judged(0)) == {"long": ("pending", "key_continues")}
    time.sleep(1.1)
    assert found(lines, lines.shop.judged(1)) == {"long": ("undecidable", "key_continues")}
    assert found(lines, lines.shop.judged(2)) == {"long": ("undecidable", "key_not_whole")}


def test_nothing_is_added_up_of_a_log_that_lost_records(lines: OrderLines) -> None:
    """Any key may have had some of them; a row that is not there, or there twice, is wrong all the same."""
    lines.send(lines.line("first", "1", 1))
    lines.send(*(lines.line(name, "1", 1) for name in ("right", "wrong", "gone", "twice")))
    delete_records(admin_client(lines.shop.bootstrap), lines.shop.topic, {0: 1})
    for name in ("right", "twice", "twice"):
        lines.row(name, 1, "1")
    lines.row("wrong", 2, "1")
    lines.row("whose", 2, "1", day=0.5)
    assert found(lines, lines.shop.judged()) == {
        "right": ("undecidable", "key_not_whole"),
        "wrong": ("undecidable", "key_not_whole"),
        "whose": ("undecidable", "key_not_whole"),
        "gone": ("missing", "lost_after_topic"),
        "twice": ("duplicate", "several_rows"),
    }


@pytest.mark.parametrize("kind", [TotalsInIceberg, TotalsInFiles])
def test_rows_of_datasets_are_held_to_their_records_too(
    lines: OrderLines, kind: Callable[..., RowsOfTotals], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are written again with each line, as in a file or a snapshot that replaces another one."""
    folder = tmp_path / "lake"
    folder.mkdir()
    store = kind(folder=folder)
    set_connection(monkeypatch, "lake", store.described)
    lines.store = store.settings
    lines.describe()
    for name in ("right", "short", "again", "gone", "twice", "later", "behind"):
        lines.send(lines.line(name, "1", 1), lines.line(name, "2", "2.50"))
    lines.send(lines.line("again", "2", 2.5))
    right, row = TotalsRow("right", 2, "3.50"), TotalsRow("later", 2, "3.50")
    wrong = [TotalsRow("short", 1, "1.00"), TotalsRow("again", 3, "6.00"), TotalsRow("stray", 1, "1.00")]
    twice = [TotalsRow("twice", 2, "3.50")] * 2
    store.write([right, *wrong, *twice, row, row._replace(order="behind")])
    lines.send(lines.line("later", "3", "-3.50", day=1), lines.line("behind", "3", "-3.50", day=1))
    context = lines.shop.judged()
    assert found(lines, context) == {
        "short": ("mismatched", "record_not_counted"),
        "again": ("mismatched", "resend_counted"),
        "gone": ("missing", "lost_after_topic"),
        "twice": ("duplicate", "several_rows"),
        "stray": ("unexpected", "not_in_source"),
        "later": ("pending", "key_continues"),
        "behind": ("pending", "key_continues"),
    }
    store.write([right, *wrong, *twice, row._replace(lines=3, total="0", day=1), row._replace(order="behind")])
    assert found(lines, lines.shop.judged(1)) == {"behind": ("mismatched", "record_not_counted")}


def test_keys_that_are_judged_alone_are_held_to_all_their_records(lines: OrderLines) -> None:
    """As in their whole window; by the rows that are there by then."""
    for name in ("right", "short", "gone", "later", "mended"):
        lines.send(lines.line(name, "1", 1), lines.line(name, "2", 2))
    for name in ("right", "later"):
        lines.row(name, 2, "3")
    lines.row("short", 1, "1")
    lines.row("mended", 1, "1")
    lines.send(lines.line("later", "3", 4, day=1), lines.line("next", "1", 1, day=1))
    lines.row("next", 1, "1", day=1)
    keys = ["right", "short", "gone", "later", "mended", "next"]
    first, second = lines.shop.judged(), lines.shop.judged(1)
    lines.shop.sql("update warehouse set lines = 2, total = 3 where id = 'mended'")
    of_first = alone(lines.shop, first, *keys)
    assert verdicts(of_first, STORE_HOP) == {
        "right": "matched",
        "short": "mismatched",
        "gone": "missing",
        "later": "pending",
        "mended": "matched",
    }
    (short,) = [finding.evidence for finding in of_first if finding.key == "short"]
    assert short["group"]["expected"] == {"lines": "2", "total": "3.00"}
    assert verdicts(alone(lines.shop, second, *keys), STORE_HOP) == {"later": "mismatched", "next": "matched"}


def test_explain_shows_what_the_records_of_a_key_add_up_to(lines: OrderLines) -> None:
    """The records of all windows that have some, each identity once, beside what the row has."""
    lines.send(lines.line("A", "1", "0.1"), lines.line("A", "2", -7), lines.line("A", "2", -7))
    lines.send(lines.line("A", "3", 2, day=1))
    lines.row("A", 2, "-6.90")
    for day in (0, 1):
        lines.shop.judged(day)
    explained = CliRunner().invoke(app, ["explain", "shop", "A"])
    assert explained.exit_code == 0, explained.output
    assert "orders→warehouse: 3 records add up to lines=3, total=-4.90; its row has lines=2, total=-6.90" in (
        " ".join(explained.stdout.split())
    )
    document = json.loads(CliRunner().invoke(app, ["explain", "shop", "A", "--json"]).stdout)
    assert document["sums"] == [
        {
            "hop": "orders→warehouse",
            "records": 3,
            "expected": {"lines": "3", "total": "-4.90"},
            "found": [{"lines": "2", "total": "-6.90"}],
        }
    ]
    assert [item["cause"] for item in document["windows"]] == ["key_continues", "record_not_counted"]


def test_a_record_that_cannot_be_read_may_be_one_of_any_key(lines: OrderLines) -> None:
    """Its amount is not known, whether or not a row agrees with the others."""
    lines.send(*(lines.line(name, "1", 1) for name in ("right", "wrong")))
    lines.shop.send_raw(b"{")
    lines.row("right", 1, "1")
    lines.row("wrong", 2, "1")
    assert found(lines, lines.shop.judged()) == dict.fromkeys(("right", "wrong"), ("undecidable", "unreadable_record"))
