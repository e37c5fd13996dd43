"""Test a store that has a row for each line of the records of a topic."""

import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import BORN
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FILE = """
version: 2
pipeline: shop
start: earliest
settle: 0s
compare: {{sku: string, amount: "decimal(8,2)", tenant: string}}
points:
  orders:
    kind: topic
    connection: log
    topic: {topic}
    explode: "$.lines[*]"
    key: {{"$.id": string, "$.lines[*].line": bigint}}
    columns: {{sku: "$.lines[*].sku", amount: "$.lines[*].total.net", ordered: {{field: "$.at", as: timestamp(ms)}}}}
  warehouse: {{kind: store, connection: db, table: lines, key: [order_id, line], time: loaded_at}}
hops:
  - from: orders
    to: warehouse
    where: sku != 'gift'
    write: {{ordered: timestamp}}
    compensation: {{missing: upsert, mismatched: upsert, duplicate: quarantine, unexpected: quarantine}}
gate: {{tolerance: {{undecodable: 1}}}}
compensation: {{limits: {{share: 1.0}}}}
"""
HOP = "orders→warehouse"
_TABLE = (
    "create table lines (order_id text, line int, sku text, amount numeric(8,2), tenant text, ordered timestamptz,"
    " loaded_at timestamptz)"
)
Line = Mapping[str, Any]


class Lines:
    """The shop with orders of several lines."""

    def __init__(self, shop: ReconciledShop) -> None:
        self.shop = shop
        shop.file.write_text(FILE.format(topic=shop.topic))
        shop.sql(_TABLE)

    def send(self, *orders: tuple[str, Any], **other: Any) -> None:
        client = producer(self.shop.bootstrap)
        for number, (name, lines) in enumerate(orders):
            at = BORN + timedelta(minutes=number)
            value = {"id": name, "tenant": "t1", "at": int(at.timestamp() * 1000), "lines": lines, **other}
            client.produce(self.shop.topic, key=name, value=json.dumps(value), timestamp=int(at.timestamp() * 1000))
        assert client.flush(30) == 0

    def load(self, name: str, *lines: Line) -> None:
        for line in lines:
            amount, sku = line["total"]["net"], line["sku"]
            values = f"('{name}', {line['line']}, '{sku}', {amount}, 't1', '{BORN}', '{BORN}')"
            self.shop.sql(f"insert into lines values {values}")

    def found(self, context: WindowContext) -> dict[str, str]:
        return {key: verdict for key, (verdict, _) in self.shop.found(context, HOP).items()}

    def rows(self) -> list[tuple[Any, ...]]:
        return self.shop.sql("select order_id, line, sku, amount, tenant from lines order by 1, 2, 3")


def _lines(*numbers: int, **other: Any) -> list[Line]:
    return [{"line": number, "sku": f"s{number}", "total": {"net": number + 0.5}, **other} for number in numbers]


@pytest.fixture
def lines(shop: ReconciledShop) -> Lines:
    """The shop, described with the lines of its orders."""
    return Lines(shop)


def test_each_line_is_found_and_repaired_alone(lines: Lines) -> None:
    """Of a record with three lines one row is gone; an extra row, one too often, one that differs; no line, null."""
    shop = lines.shop
    gift = {"line": 9, "sku": "gift", "total": {"net": 1}}
    orders = {name: _lines(1, 2, 3) for name in "ABC"}
    lines.send(*orders.items(), ("D", []), ("E", None), ("G", [*_lines(1), gift]))
    lines.load("A", *_lines(1, 3))
    lines.load("B", *_lines(1, 2, 3, 4))
    lines.load("C", *_lines(1, 2), *_lines(2), {**_lines(3)[0], "total": {"net": 99}})
    lines.load("G", *_lines(1))
    before = {row[:2]: row for row in lines.rows()}

    context = shop.judge_and_ask_the_gate()
    keys = lines.found(context)
    assert sorted(keys.values()) == ["duplicate", "mismatched", "missing", "unexpected"]
    by_verdict = {verdict: key for key, verdict in keys.items()}
    assert ("A" in by_verdict["missing"], "2" in by_verdict["missing"]) == (True, True)
    assert ("B" in by_verdict["unexpected"], "4" in by_verdict["unexpected"]) == (True, True)
    assert (shop.accounting(context)["data"], shop.accounting(context)["elements"]) == (6, 11)
    counts = shop.counts(context, HOP)
    assert (counts.matched, counts.missing, counts.unexpected) == (7, 1, 1)

    plan = plan_window(context).plan
    assert plan is not None
    assert plan.counts == {"upsert": 2, "quarantine": 2}
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert set(shop.outcomes(context).values()) == {"repaired"}
    assert shop.certify(context).state is WindowState.CERTIFIED

    after = {row[:2]: row for row in lines.rows()}
    assert after["A", 2] == ("A", 2, "s2", Decimal("2.50"), "t1")
    assert [row for row in lines.rows() if row[0] == "B"] == [before["B", number] for number in (1, 2, 3)]
    assert [row for row in lines.rows() if row[0] == "C"] == [
        before["C", 1],
        before["C", 2],
        ("C", 3, "s3", Decimal("3.50"), "t1"),
    ]
    [(ordered,)] = shop.sql("select ordered from lines where order_id = 'A' and line = 2")
    assert ordered == BORN
    assert isinstance(ordered, datetime)


def test_a_record_without_an_array_may_have_had_any_line(lines: Lines) -> None:
    """It is placed and counted once, and a row of no known line may be its own; a line without a number likewise."""
    shop = lines.shop
    lines.send(("A", _lines(1, 2)), ("F", "no array"), ("G", [*_lines(1), {"sku": "x"}, 5]))
    lines.load("A", *_lines(1, 2, 3))
    lines.load("G", *_lines(1))
    context = shop.judge_and_ask_the_gate()
    assert list(lines.found(context).values()) == ["undecidable"]
    accounting = shop.accounting(context)
    assert (accounting["data"], accounting["undecodable"], accounting["elements"]) == (1, 2, 3)
    assert "value has no array at $.lines" in json.dumps(shop.manifests(context)["orders"])


def test_a_record_that_is_sent_again_and_a_line_that_is_there_twice_are_no_loss(lines: Lines) -> None:
    """One row for each line is right however often a producer says it; a second row of the loader is a duplicate."""
    shop = lines.shop
    lines.send(("A", _lines(1, 2)), ("B", _lines(1, 1)), ("A", _lines(1, 2)), ("C", _lines(1, 1)))
    lines.load("A", *_lines(1, 2))
    lines.load("B", *_lines(1))
    lines.load("C", *_lines(1, 1))
    context = shop.judged()
    verdicts = lines.found(context)
    assert list(verdicts.values()) == ["duplicate"]
    assert "C" in next(iter(verdicts))


def test_a_row_that_comes_a_window_later_is_that_of_its_line(lines: Lines) -> None:
    """The key index knows the lines of the records before, and a line that was lost stays lost."""
    shop = lines.shop
    lines.send(("A", _lines(1, 2, 3)))
    lines.load("A", *_lines(1, 2))
    assert list(lines.found(shop.judged()).values()) == ["missing"]

    late = BORN + timedelta(days=1, hours=1)
    shop.sql(f"insert into lines values ('A', 3, 's3', 3.5, 't1', '{BORN}', '{late}')")
    shop.sql(f"insert into lines values ('A', 2, 's2', 2.5, 't1', '{BORN}', '{late}')")
    lines.send(("Z", _lines(1)))
    lines.load("Z", *_lines(1))
    verdicts = lines.found(shop.judged(1))
    assert list(verdicts.values()) == ["duplicate"]
    assert "2" in next(iter(verdicts))


def test_a_row_whose_line_was_compacted_away_is_not_unexpected(lines: Lines) -> None:
    """A newer record of the order has other lines: what the older one had is not known any more."""
    shop = lines.shop
    shop.change_topic(cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.001)
    lines.send(("A", _lines(1, 2)), ("B", _lines(1)), ("A", _lines(3)))
    deadline = time.monotonic() + 60
    while sum(record.key_text == "A" for record in shop.read()) > 1:
        assert time.monotonic() < deadline
        lines.send(*[("Z", _lines(1))] * 9)  # the segment is rolled by the times of its records
        time.sleep(0.5)
    lines.load("A", *_lines(1, 2, 3))
    lines.load("Z", *_lines(1))
    context = shop.judged()
    assert shop.accounting(context)["compacted"] > 0
    assert shop.found(context, HOP) == {
        '["A","1"]': ("undecidable", "compacted"),
        '["A","2"]': ("undecidable", "compacted"),
        '["B","1"]': ("missing", "lost_after_topic"),
    }


def test_a_record_that_contradicts_itself_repairs_nothing(lines: Lines) -> None:
    """A line with two contents: whatever the store has of it stays, and nothing is written."""
    shop = lines.shop
    twice = [*_lines(1), {**_lines(1)[0], "sku": "other"}]
    lines.send(*((name, twice) for name in "ABCD"))
    lines.load("A", *twice[:1])
    lines.load("B", *twice[1:])
    lines.load("C", *twice)
    before = lines.rows()
    context = shop.judge_and_ask_the_gate()
    conflict = ("conflict", "source_contradicts_itself")
    assert {key[2]: finding for key, finding in shop.found(context, HOP).items()} == {
        **dict.fromkeys("ABC", conflict),
        "D": ("missing", "lost_after_topic"),
    }
    held = shop.evidence(context, HOP, '["B","1"]')["conflict"]
    assert [copy["values"]["sku"] for copy in held["source"]] == ["s1", "other"]
    assert [copy["values"]["sku"] for copy in held["target"]] == ["other"]
    assert plan_window(context).plan is None
    assert lines.rows() == before
