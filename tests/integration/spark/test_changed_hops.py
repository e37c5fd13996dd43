"""Test a pipeline file whose hops change between windows: what the change alone explains stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_survivors import repair, send
from tests.world.combinations import with_every_change
from tests.world.orders import COLUMNS, Order, orders
from tests.world.pipeline_file import fed_by_ledgers, ledger, pipeline_file, store, topic
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHANGED = ("undecidable", "hops_changed")
REMEDIES = "{limits: {share: 1.0}, missing: upsert, mismatched: upsert, unexpected: quarantine, duplicate: quarantine}"
FIRST = "first→warehouse"


@dataclass(frozen=True, kw_only=True)
class TwoSources:
    """A table that two sources fill, until the file names only one of them."""

    shop: ReconciledShop
    kinds: Sequence[str]
    semantics: str
    topics: dict[str, str]

    @classmethod
    def of(cls, shop: ReconciledShop, case: str) -> "TwoSources":
        first, second, semantics = case.split()
        topics = {name: shop.add_topic() for name, kind in (("first", first), ("second", second)) if kind == "topic"}
        for name in {"first", "second"} - {*topics}:
            shop.sql(f"create table {name} (like outbox including all)")
        return cls(shop=shop, kinds=(first, second), semantics=semantics, topics=topics)

    def describe(self, *names: str) -> None:
        points = {name: self._point(name) for name in names} | {"warehouse": store("db", "warehouse")}
        text = pipeline_file(
            "shop",
            points=points,
            hops=[{"from": name, "to": "warehouse", "semantics": self.semantics} for name in names],
            settings={
                "start": "earliest",
                "settle": "0s",
                "late": "3d",
                "compare": '{amount: "decimal(8,2)"}',
                "compensation": REMEDIES,
            },
            columns=COLUMNS,
        )
        self.shop.file.write_text(text)

    def _point(self, name: str) -> dict[str, str]:
        if name in self.topics:
            return topic("log", self.topics[name], partitioner="murmur2")
        return ledger("db", name)

    def bring(self, name: str, made: list[Order]) -> None:
        if name in self.topics:
            send(self.shop, self.topics[name], made)
        else:
            self.shop.write(name, made)
        self.shop.write("warehouse", made)


CASES = (
    "topic ledger event",
    "ledger topic upsert",
    "ledger ledger upsert",
    "topic topic event",
    "ledger ledger event",
    "topic topic upsert",
)


@pytest.mark.parametrize("case", with_every_change(CASES, first=3))
def test_rows_of_a_source_that_the_file_names_no_more_are_reported_and_stay(shop: ReconciledShop, case: str) -> None:
    sources = TwoSources.of(shop, case)
    sources.describe("first", "second")
    sources.bring("first", orders(range(4)))
    sources.bring("second", orders(range(4, 8)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    sources.describe("first")
    sources.bring("first", orders(range(10, 14), day=1))
    shop.write("warehouse", orders([77], day=1))
    shop.sql("update warehouse set at = at + interval '1 day' where number in (1, 5, 6)")
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, FIRST) == {"O5": CHANGED, "O6": CHANGED, "O77": ("unexpected", "not_in_source")}
    assert repair(shop, context).state is WindowState.NOT_KNOWN
    assert {row[0] for row in shop.sql("select number from warehouse")} == {*range(8), *range(10, 14)}

    sources.describe("first", "second")
    sources.bring("first", orders(range(20, 24), day=2))
    sources.bring("second", orders(range(30, 34), day=2))
    shop.sql("update warehouse set at = at + interval '1 day' where number in (1, 5, 6)")
    assert shop.whole_way(2)[1].state is WindowState.CERTIFIED


KINDS = ("ledger event", "topic upsert", "ledger upsert", "topic event")


@pytest.mark.parametrize("kind", with_every_change(KINDS, first=2))
def test_what_a_new_store_has_of_windows_without_its_hop_is_reported_where_it_is_met_and_stays(
    shop: ReconciledShop, kind: str
) -> None:
    """The archive lacks some rows of the first day, and has others otherwise; rows of both are touched."""
    source, semantics = kind.split()
    shop.sql("alter table outbox add column status text; create table archive (like warehouse including all)")
    first, second = orders(range(6)), orders(range(100, 106), day=1)
    send_or_write = shop.send if source == "topic" else partial(shop.write, "outbox")
    describe(shop, source, semantics)
    send_or_write(first)
    shop.write("warehouse", first)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    with_archive(shop)
    shop.write("archive", [order | {"amount": "1000.00"} for order in first[3:]])
    shop.sql("update archive set at = at + interval '1 day' where number = 5")
    shop.sql("update outbox set status = 'shipped' where number < 3")
    send_or_write(second)
    shop.write("warehouse", second)
    shop.write("archive", second[1:])
    context = shop.judge_and_ask_the_gate(1)
    point = "outbox" if source == "ledger" else "orders"
    touched = (0, 1, 2, 5) if source == "ledger" else (5,)
    verdicts = shop.found(context, f"{point}→archive")
    assert {key for key, (verdict, _) in verdicts.items() if verdict == "missing"} == {"O100"}
    assert {key: said for key, said in verdicts.items() if key != "O100"} == {
        f"O{number}": CHANGED for number in touched
    }
    assert shop.found(context, f"{point}→warehouse") == {}
    assert repair(shop, context).state is WindowState.NOT_KNOWN
    assert shop.sql("select count(*), count(*) filter (where amount = 1000) from archive") == [(9, 3)]

    assert repair(shop, shop.judge_and_ask_the_gate(0)).state is WindowState.CERTIFIED
    assert shop.sql("select count(*), count(*) filter (where amount = 1000) from archive") == [(12, 0)]


def describe(shop: ReconciledShop, source: str, semantics: str) -> None:
    if source == "topic":
        hop = {"compensation": "{missing: upsert, mismatched: upsert, unexpected: quarantine, duplicate: quarantine}"}
        shop.describe(hop=hop, has_ledger=False, is_upsert=semantics == "upsert", late="3d", topic_key="kafka.key")
    else:
        hop = {"semantics": semantics}
        text = fed_by_ledgers(["outbox"], hop=hop, columns=COLUMNS, late="3d", compensation=REMEDIES)
        shop.file.write_text(text)


def with_archive(shop: ReconciledShop) -> None:
    """Write a second store into the file, with a hop like that of the first one."""
    text = shop.file.read_text()
    lines = (next(line for line in text.splitlines() if mark in line) for mark in ("kind: store", "to: warehouse"))
    for line in lines:
        text = text.replace(line, f"{line}\n{line.replace('warehouse', 'archive')}")
    shop.file.write_text(text)
