"""Test a store that has the latest version of each line, of records whose newer ones may have fewer lines."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.errors import RefusedError
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
compare: {{sku: string}}
points:
  orders:
    kind: topic
    connection: log
    topic: {topic}
    explode: "$.lines[*]"
    key: {{"$.id": string, "$.lines[*].line": bigint}}
    columns: {{sku: "$.lines[*].sku"}}
    {version}
  warehouse: {{kind: store, connection: db, table: lines, key: [order_id, line], time: loaded_at}}
hops:
  - from: orders
    to: warehouse
    semantics: upsert
    removed_elements: kept
    where: sku != 'gift'
    compensation: {{missing: upsert, mismatched: upsert, duplicate: quarantine, unexpected: quarantine}}
gate: {{tolerance: {{undecodable: 1}}}}
compensation: {{limits: {{share: 1.0}}}}
"""
HOP = "orders→warehouse"
A_LITTLE_LATER = timedelta(days=1, hours=1)

Row = tuple[str, int, str]


class LatestLines:
    """The shop with orders that are sent again with other lines."""

    def __init__(self, shop: ReconciledShop) -> None:
        self.shop = shop
        self.describe()
        shop.sql("create table lines (order_id text, line int, sku text, loaded_at timestamptz)")

    def describe(self, version: str = "") -> None:
        self.shop.file.write_text(FILE.format(topic=self.shop.topic, version=version))

    def send(self, *orders: tuple[str, Any], partition: int = 0, **other: Any) -> None:
        client = producer(self.shop.bootstrap)
        for number, (name, lines) in enumerate(orders):
            at = int((BORN + timedelta(minutes=number)).timestamp() * 1000)
            value = json.dumps({"id": name, "lines": lines, **other})
            client.produce(self.shop.topic, key=name, value=value, timestamp=at, partition=partition)
        assert client.flush(30) == 0

    def load(self, *rows: Row, at: timedelta = timedelta()) -> None:
        for name, line, sku in rows:
            self.shop.sql(f"insert into lines values ('{name}', {line}, '{sku}', '{BORN + at}')")

    def found(self, context: WindowContext) -> dict[tuple[str, str], tuple[str, str]]:
        return {tuple(json.loads(key)): finding for key, finding in self.shop.found(context, HOP).items()}

    def rows(self) -> list[Row]:
        return self.shop.sql("select order_id, line, sku from lines order by 1, 2, 3")


def _lines(skus: Mapping[int, str] | Sequence[tuple[int, str]], **other: Any) -> list[dict[str, Any]]:
    pairs = skus.items() if isinstance(skus, Mapping) else skus
    return [{"line": number, "sku": sku, **other} for number, sku in pairs]


@pytest.fixture
def lines(shop: ReconciledShop) -> LatestLines:
    """The shop, described with the latest version of the lines of its orders."""
    return LatestLines(shop)


def test_a_line_that_a_newer_record_does_not_have_stays_as_it_was(lines: LatestLines) -> None:
    """Right: the newest line of each key, removed ones kept. Wrong: an old one, one that is gone, one of no record."""
    lines.send(
        ("A", _lines({1: "a", 2: "b", 3: "c"})),
        ("A", _lines({1: "a2"})),
        ("A", []),
        ("B", _lines({1: "a", 2: "b"})),
        ("B", _lines({2: "b2"})),
        ("C", _lines({1: "x"})),
        ("C", None),
        ("D", _lines({1: "d", 2: "e"})),
        ("D", _lines({1: "gift"})),
    )
    lines.load(("A", 1, "a2"), ("A", 2, "b"), ("A", 3, "c"), ("B", 1, "a"), ("B", 2, "b"), ("B", 9, "?"))
    lines.load(("D", 1, "d"), ("D", 2, "e"))
    context = lines.shop.judge_and_ask_the_gate()
    verdicts = {key: verdict for key, (verdict, _) in lines.found(context).items()}
    assert verdicts == {
        ("B", "2"): "mismatched",
        ("B", "9"): "unexpected",
        ("C", "1"): "missing",
        ("D", "1"): "unexpected",
    }
    assert lines.shop.accounting(context)["elements"] == 11

    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert set(lines.shop.outcomes(context).values()) == {"repaired"}
    assert lines.shop.certify(context).state is WindowState.CERTIFIED
    assert lines.rows() == [
        *[("A", 1, "a2"), ("A", 2, "b"), ("A", 3, "c"), ("B", 1, "a"), ("B", 2, "b2"), ("C", 1, "x"), ("D", 2, "e")]
    ]


def test_the_latest_line_may_be_one_of_an_earlier_window(lines: LatestLines) -> None:
    """A row that is written again days after is held to the line of the last record that has it."""
    lines.send(("A", _lines({1: "a", 2: "b"})), ("B", _lines({1: "x"})))
    lines.load(("A", 1, "a"), ("A", 2, "b"), ("B", 1, "x"))
    assert lines.found(lines.shop.judged()) == {}

    lines.send(("A", _lines({1: "a2"})))
    lines.shop.sql(
        f"update lines set sku = 'a2', loaded_at = '{BORN + A_LITTLE_LATER}' where order_id = 'A' and line = 1"
    )
    lines.shop.sql(
        f"update lines set sku = '?', loaded_at = '{BORN + A_LITTLE_LATER}' where order_id = 'A' and line = 2"
    )
    assert lines.found(lines.shop.judged(1)) == {("A", "2"): ("mismatched", "value_differs")}


def test_lines_of_one_key_in_one_record_are_read_only_where_they_agree(lines: LatestLines) -> None:
    """Nothing orders two lines of one record: neither of them is right, and only their own key is not known."""
    lines.send(
        ("A", _lines([(1, "a"), (1, "a2"), (2, "b")])),
        ("B", _lines([(1, "a"), (1, "a")])),
        ("C", _lines({1: "c"})),
    )
    lines.load(("A", 1, "a"), ("A", 2, "b"), ("B", 1, "a"))
    context = lines.shop.judge_and_ask_the_gate()
    assert lines.found(context) == {
        ("A", "1"): ("undecidable", "unreadable_record"),
        ("C", "1"): ("missing", "lost_after_topic"),
    }
    accounting = lines.shop.accounting(context)
    assert (accounting["data"], accounting["undecodable"], accounting["elements"]) == (2, 1, 3)
    assert "value has elements of one key at $.lines that differ" in json.dumps(lines.shop.manifests(context)["orders"])


def test_versions_order_lines_of_one_record_and_of_several_partitions(lines: LatestLines) -> None:
    """A line's own version decides wherever it stands; without one, records of two partitions are in no order."""
    lines.shop.partitions = 2
    lines.describe('version: "$.lines[*].rev"')
    revisions = [*_lines({1: "new"}, rev=3), *_lines({1: "old"}, rev=2), *_lines({2: "b"}, rev=1)]
    lines.send(("A", revisions), ("A", _lines({2: "late"}, rev=0)), ("B", _lines({1: "b1"}, rev=1)))
    lines.load(("A", 1, "new"), ("A", 2, "b"), ("B", 1, "?"))
    assert lines.found(lines.shop.judged()) == {("B", "1"): ("mismatched", "value_differs")}


def test_a_tombstone_may_have_been_any_line(lines: LatestLines) -> None:
    """It names no line: what the store lacks may have been deleted by it."""
    lines.send(("A", _lines({1: "a", 2: "b"})))
    client = producer(lines.shop.bootstrap)
    client.produce(lines.shop.topic, key="A", value=None, timestamp=int(BORN.timestamp() * 1000))
    assert client.flush(30) == 0
    lines.load(("A", 1, "a"), ("X", 1, "x"))
    context = lines.shop.judged()
    assert {verdict for verdict, _ in lines.found(context).values()} == {"undecidable"}
    assert set(lines.found(context)) == {("A", "2"), ("X", "1")}


def test_a_compacted_topic_is_refused(lines: LatestLines) -> None:
    """Compaction takes the last record that has a line, as a newer one of the order need not have it."""
    lines.send(("A", _lines({1: "a"})))
    lines.shop.change_topic(cleanup_policy="compact")
    with pytest.raises(RefusedError, match="the latest version of an element may be in a record that compaction took"):
        lines.shop.ask()


def test_the_highest_version_of_a_line_is_what_a_repair_writes(lines: LatestLines) -> None:
    """One record has several versions of a line, which the store lacks, or has an older one of."""
    lines.describe('version: "$.lines[*].rev"')
    revisions = [*_lines({1: "old", 2: "old"}, rev=2), *_lines({1: "new", 2: "new"}, rev=10)]
    lines.send(("A", revisions))
    lines.load(("A", 2, "old"))
    context = lines.shop.judge_and_ask_the_gate()
    assert {key: verdict for key, (verdict, _) in lines.found(context).items()} == {
        ("A", "1"): "missing",
        ("A", "2"): "mismatched",
    }
    plan = plan_window(context).plan
    assert plan is not None
    assert plan.counts == {"upsert": 2}
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert lines.shop.certify(context).state is WindowState.CERTIFIED
    assert lines.rows() == [("A", 1, "new"), ("A", 2, "new")]
