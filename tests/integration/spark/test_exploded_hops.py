"""Test hops between topics of which one or both have several lines in a record, and from a ledger of lines."""

import json
from datetime import timedelta
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.compute.keys import key_text
from makewhole.model.window import WindowState
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
  book: {{kind: ledger, connection: db, table: book, key: [order_id, line], time: at}}
  orders:
    kind: topic
    connection: log
    topic: {orders}
    explode: "$.lines[*]"
    key: {{"$.id": string, "$.lines[*].line": bigint}}
    columns: {{sku: "$.lines[*].sku"}}
  lines: {{kind: topic, connection: log, topic: {lines}, key: {{"$.order": string, "$.line": bigint}}}}
  bundles:
    kind: topic
    connection: log
    topic: {bundles}
    explode: "$.of.all[*]"
    key: {{"$.id": string, "$.of.all[*].line": bigint}}
    columns: {{sku: "$.of.all[*].sku"}}
  warehouse: {{kind: store, connection: db, table: warehouse, key: [order_id, line], time: at}}
hops:
  - {{from: book, to: orders{hop}}}
  - {{from: orders, to: lines{hop}}}
  - {{from: lines, to: bundles{hop}}}
  - {{from: orders, to: bundles{hop}}}
  - from: bundles
    to: warehouse{more}
    compensation: {{missing: upsert, mismatched: upsert, duplicate: quarantine, unexpected: quarantine}}
compensation: {{limits: {{share: 1.0}}}}
"""
UPSERT = ", semantics: upsert, removed_elements: kept"
HOPS = ("book→orders", "orders→lines", "lines→bundles", "orders→bundles", "bundles→warehouse")
Line = tuple[int, str]


class Chain:
    """A ledger of lines, orders with all of theirs, a record for each, bundles of some, and a row for each."""

    def __init__(self, shop: ReconciledShop) -> None:
        self.shop = shop
        self.lines, self.bundles = shop.add_topic(), shop.add_topic()
        self.describe()
        for table in ("book", "warehouse"):
            shop.sql(f"drop table if exists {table}")
            shop.sql(f"create table {table} (order_id text, line int, sku text, at timestamptz)")

    def describe(self, hop: str = "", more: str = "") -> None:
        names = {"orders": self.shop.topic, "lines": self.lines, "bundles": self.bundles}
        self.shop.file.write_text(FILE.format(hop=hop, more=more, **names))

    def fill(self, table: str, name: str, *lines: Line) -> None:
        for line, sku in lines:
            self.shop.sql(f"insert into {table} values ('{name}', {line}, '{sku}', '{BORN}')")

    def send(self, topic: str, *values: dict[str, Any]) -> None:
        client = producer(self.shop.bootstrap)
        for number, value in enumerate(values):
            at = int((BORN + timedelta(minutes=number)).timestamp() * 1000)
            client.produce(topic, key=b"k", value=json.dumps(value), timestamp=at)
        assert client.flush(30) == 0

    def order(self, name: str, *lines: Line) -> dict[str, Any]:
        return {"id": name, "lines": [{"line": line, "sku": sku} for line, sku in lines]}

    def bundle(self, name: str, *lines: Line) -> dict[str, Any]:
        return {"id": name, "of": {"all": [{"line": line, "sku": sku} for line, sku in lines]}}

    def single(self, name: str, line: Line) -> dict[str, Any]:
        return {"order": name, "line": line[0], "sku": line[1]}

    def found(self, context: Any) -> dict[str, dict[str, str]]:
        return {
            hop: {"".join(json.loads(key)): verdict for key, (verdict, _) in self.shop.found(context, hop).items()}
            for hop in HOPS
        }


@pytest.fixture
def chain(shop: ReconciledShop) -> Chain:
    """The shop, with topics of orders, of lines, and of bundles."""
    return Chain(shop)


def test_each_hop_is_judged_line_by_line(chain: Chain) -> None:
    """Every kind of fault, on hops of their own; a line twice in one bundle is there twice. Bundles have two sources:
    what one of them has is not unexpected, and where they differ it is a conflict."""
    whole = ((1, "a"), (2, "b"), (3, "c"))
    for name in "ABC":
        chain.fill("book", name, *whole)
    chain.send(chain.shop.topic, chain.order("A", *whole), chain.order("B", *whole[:2]), chain.order("C", *whole))
    singles = [chain.single("A", line) for line in whole] + [chain.single("B", line) for line in whole[:1]]
    singles += [chain.single("C", line) for line in ((1, "a"), (2, "b"), (3, "other"), (3, "other"), (9, "z"))]
    chain.send(chain.lines, *singles)
    chain.send(
        chain.bundles,
        chain.bundle("A", (1, "a"), (2, "b")),
        chain.bundle("A", (2, "b"), (3, "c")),
        chain.bundle("B", (1, "a"), (1, "a"), (2, "b")),
        chain.bundle("C", (1, "x"), (2, "b"), (3, "c")),
    )
    chain.fill("warehouse", "A", *whole)
    chain.fill("warehouse", "B", (1, "a"))
    chain.fill("warehouse", "C", (1, "x"), (2, "b"), (3, "c"))
    context = chain.shop.judge_and_ask_the_gate()
    assert chain.found(context) == {
        "book→orders": {"B3": "missing"},
        "orders→lines": {"B2": "missing", "C3": "duplicate", "C9": "unexpected"},
        "lines→bundles": {
            "A2": "duplicate",
            "B1": "duplicate",
            "C1": "mismatched",
            "C3": "conflict",
            "C9": "missing",
        },
        "orders→bundles": {"A2": "duplicate", "B1": "duplicate", "C1": "mismatched", "C3": "conflict"},
        "bundles→warehouse": {"B2": "missing"},
    }
    manifests = chain.shop.manifests(context)
    assert {name: manifests[name]["accounting"].get("elements", 0) for name in ("orders", "lines", "bundles")} == {
        "orders": 8,
        "lines": 0,
        "bundles": 10,
    }


def test_what_was_sent_whole_is_certified(chain: Chain) -> None:
    """A chain without a fault, whose store lacks a line until it is repaired: no topic gets a record."""
    whole = ((1, "a"), (2, "b"))
    chain.fill("book", "A", *whole)
    chain.send(chain.shop.topic, chain.order("A", *whole))
    chain.send(chain.lines, *(chain.single("A", line) for line in whole))
    chain.send(chain.bundles, *(chain.bundle("A", line) for line in whole))
    chain.fill("warehouse", "A", whole[0])
    context = chain.shop.judge_and_ask_the_gate()
    assert chain.found(context) == {hop: {"A2": "missing"} if hop == HOPS[-1] else {} for hop in HOPS}
    plan = plan_window(context).plan
    assert plan is not None
    assert plan.counts == {"upsert": 1}
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert chain.shop.certify(context).state is WindowState.CERTIFIED
    assert [len(chain.shop.read(name)) for name in (chain.shop.topic, chain.lines, chain.bundles)] == [1, 2, 2]


def test_the_latest_line_is_compared_at_both_ends(chain: Chain) -> None:
    """Older lines in a topic are no duplicates. One that is older at the end of a hop is wrong, as is one not there."""
    chain.describe(hop=UPSERT, more="\n    semantics: upsert\n    removed_elements: kept")
    chain.fill("book", "A", (1, "a2"), (2, "b"))
    chain.fill("book", "B", (1, "x"))
    chain.send(chain.shop.topic, chain.order("A", (1, "a"), (2, "b")), chain.order("A", (1, "a2")))
    chain.send(chain.lines, *(chain.single("A", line) for line in ((1, "a"), (2, "b"), (1, "a2"))))
    chain.send(chain.bundles, chain.bundle("A", (1, "a")), chain.bundle("A", (1, "a2"), (2, "b")), chain.bundle("A"))
    chain.send(chain.bundles, chain.bundle("A", (1, "a")))
    chain.fill("warehouse", "A", (1, "a"), (2, "b"))
    assert chain.found(chain.shop.judged()) == {
        "book→orders": {"B1": "missing"},
        "orders→lines": {},
        "lines→bundles": {"A1": "mismatched"},
        "orders→bundles": {"A1": "mismatched"},
        "bundles→warehouse": {},
    }


def test_findings_have_the_evidence_of_their_own_lines(chain: Chain) -> None:
    """Lines of one record are at one place: each finding has its own copies there, and the counts have all of them."""
    whole = ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
    chain.send(chain.lines, *(chain.single("A", line) for line in whole))
    chain.send(chain.bundles, chain.bundle("A", (1, "a"), (2, "x"), (3, "y"), (4, "d"), (4, "d")))
    context = chain.shop.judged()
    hop = HOPS[2]
    counts = chain.shop.counts(context, hop)
    assert (counts.source_rows, counts.target_rows) == (4, 5)
    verdicts = {json.loads(key)[1]: finding for key, finding in chain.shop.found(context, hop).items()}
    assert verdicts == {
        "2": ("mismatched", "value_differs"),
        "3": ("mismatched", "value_differs"),
        "4": ("duplicate", "application_resend"),
    }
    evidence = {line: chain.shop.evidence(context, hop, key_text(["A", line])) for line in verdicts}
    places = {line: [copy["place"] for copy in of_line["target"]] for line, of_line in evidence.items()}
    assert places == {"2": ["0:0"], "3": ["0:0"], "4": ["0:0", "0:0"]}
    assert evidence["2"]["columns"] == {"sku": {"source": "b", "target": "x"}}
    assert evidence["3"]["columns"] == {"sku": {"source": "c", "target": "y"}}
    assert evidence["4"]["repeated"] == {"here": ["0:0", "0:0"], "elsewhere": 0}
