"""Test hops that compare columns of their own: verdicts are by these, whichever windows the copies of a key are in."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.config.connections import from_environment
from makewhole.journal.database import connect
from makewhole.journey.trace import trace
from makewhole.key_index.rebuild import rebuild
from makewhole.lake.storage import Storage
from makewhole.model.window import WindowState
from makewhole.window.configuration import reading_sha256
from makewhole.window.context import as_last_read
from tests.integration.spark.test_survivors import repair
from tests.world.combinations import with_every_change
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, flow, store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

REGION_HOP = "orders→regions"
HOPS = (LEDGER_HOP, STORE_HOP, REGION_HOP)
WRONG: Mapping[str, Order] = {"O1": {"number": 99}, "O2": {"amount": "77.00"}, "O3": {"region": "XX"}}
"""Values that a loader writes wrongly, each in one column, by order."""
_REPAIRS = flow({"missing": "upsert", "mismatched": "upsert"})


def describe(
    shop: ReconciledShop,
    *,
    of_warehouse: str = "{amount: 'decimal(8,2)'}",
    of_ledger: Settings = MappingProxyType({}),
    store_hop: Settings = MappingProxyType({}),
    region_hop: Settings = MappingProxyType({}),
    is_upsert: bool = False,
) -> None:
    """The ledger and the topic have number, amount and region, the warehouse the amount, and a table the region."""
    semantics = {"semantics": "upsert"} if is_upsert else {}
    shop.describe(
        compare="{number: int, amount: 'decimal(8,2)', region: string}",
        hop={
            "compare": of_warehouse,
            "compensation": _REPAIRS,
            "write": "{number: int, region: string, at: timestamp}",
            **store_hop,
        },
        ledger_hop=of_ledger,
        more_points={"regions": {**store("db", "regions"), **({"version": "version"} if is_upsert else {})}},
        more_hops=[
            {
                "from": "orders",
                "to": "regions",
                "compare": "{region: string}",
                "compensation": _REPAIRS,
                "write": "{at: timestamp}",
                **semantics,
                **region_hop,
            }
        ],
        is_upsert=is_upsert,
        has_version=is_upsert,
        late="3d",
        is_observing=True,
    )


def make(shop: ReconciledShop, *, is_upsert: bool = False) -> None:
    version = ", version int" if is_upsert else ""
    shop.sql(f"create table regions (id text, region text, at timestamptz{version})")
    if is_upsert:
        shop.sql("alter table outbox add version int; alter table warehouse add version int")
    describe(shop, is_upsert=is_upsert)


def of_regions(made: list[Order]) -> list[Order]:
    return [{name: order[name] for name in ("id", "region", "at", "version") if name in order} for order in made]


def found(shop: ReconciledShop, day: int = 0) -> Mapping[str, Mapping[str, str]]:
    context = shop.judge_and_ask_the_gate(day)
    verdicts = {hop: {key: verdict for key, (verdict, _) in shop.found(context, hop).items()} for hop in HOPS}
    return {hop: of_hop for hop, of_hop in verdicts.items() if of_hop}


def test_each_hop_judges_by_its_own_columns_and_repairs_no_others(shop: ReconciledShop) -> None:
    make(shop)
    made = orders(range(12))
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", [order | WRONG.get(order["id"], {}) for order in made if order["id"] != "O5"])
    of_table = [order | ({"region": "XX"} if order["id"] == "O4" else {}) for order in made]
    shop.write("regions", of_regions([*of_table, made[6]]))

    assert found(shop) == {
        STORE_HOP: {"O2": "mismatched", "O5": "missing"},
        REGION_HOP: {"O4": "mismatched", "O6": "duplicate"},
    }
    shop.sql("delete from regions where ctid in (select max(ctid) from regions where id = 'O6')")
    context = shop.judge_and_ask_the_gate()
    columns = shop.evidence(context, STORE_HOP, "O2")["columns"]
    assert columns == {"amount": {"source": "2.50", "target": "77.00"}}
    assert repair(shop, context).state is WindowState.CERTIFIED
    rows = "select id, number, amount::text, region from warehouse where id in ('O1', 'O2', 'O3', 'O5') order by 1"
    assert shop.sql(rows) == [
        ("O1", 99, "1.50", "US"),
        ("O2", 2, "2.50", "EU"),
        ("O3", 3, "3.50", "XX"),
        ("O5", 5, "5.50", "US"),
    ]


@pytest.mark.parametrize("case", with_every_change(["event", "upsert", "event rebuilt"], first=2))
def test_rows_of_a_later_window_are_held_to_what_their_hop_compares(shop: ReconciledShop, case: str) -> None:
    """The records are in one window, their rows come in the next: only the key index knows the records' values."""
    is_upsert = case == "upsert"
    make(shop, is_upsert=is_upsert)
    made = [order | ({"version": 1} if is_upsert else {}) for order in orders(range(8))]
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", made)
    shop.write("regions", of_regions(made))
    assert found(shop) == {}
    if case == "event rebuilt":
        with connect(shop.journal) as journal:
            pipeline = as_last_read(journal, shop.pipeline)
            done = rebuild(journal, Storage.from_environment(), pipeline, reading_sha256(pipeline))
        assert [(index.from_snapshots, index.from_index) for index in done] == [(1, 0)]

    shop.sql("delete from warehouse; delete from regions")
    late = [order | WRONG.get(order["id"], {}) for order in made]
    shop.write("warehouse", [order | {"at": "2025-03-02T01:00:00+00:00"} for order in late])
    shop.write("regions", of_regions([order | {"at": "2025-03-02T01:00:00+00:00"} for order in late]))
    new = [order | ({"version": 1} if is_upsert else {}) for order in orders(range(100, 104), 1)]
    shop.write("outbox", new)
    shop.send(new)
    shop.write("warehouse", new)
    shop.write("regions", of_regions(new))
    assert found(shop, 1) == {STORE_HOP: {"O2": "mismatched"}, REGION_HOP: {"O3": "mismatched"}}


def test_rows_that_were_changed_behind_their_records_are_found_by_the_columns_of_their_hop(
    shop: ReconciledShop,
) -> None:
    """The times of the rows lie in no window any more: a window looks at keys of earlier ones."""
    make(shop)
    for day in (0, 4):
        made = orders(range(100 * day, 100 * day + 8), day)
        shop.write("outbox", made)
        shop.send(made)
        shop.write("warehouse", made)
        shop.write("regions", of_regions(made))
        if day == 0:
            assert found(shop) == {}
            past = "at = at - interval '90 days'"
            shop.sql(f"update warehouse set number = 99, {past} where id = 'O1'")
            shop.sql(f"update warehouse set amount = 99, {past} where id = 'O2'")
            shop.sql(f"update regions set region = 'XX', {past} where id = 'O3'")
    assert found(shop, 4) == {STORE_HOP: {"O2": "mismatched"}, REGION_HOP: {"O3": "mismatched"}}


def test_a_record_that_is_produced_is_proven_by_what_each_hop_compares(shop: ReconciledShop) -> None:
    """The loader of the warehouse writes another number, which only the ledger's hop compares."""
    make(shop)
    describe(shop, of_ledger={"compensation": "{missing: produce}"})
    made = orders(range(8))
    shop.write("outbox", made)
    shop.send(made[:7])
    shop.write("warehouse", made[:7])
    shop.write("regions", of_regions(made[:7]))
    context = shop.judge_and_ask_the_gate()
    assert [*shop.found(context, LEDGER_HOP)] == ["O7"]

    plan_window(context)
    compensate_window(context, lambda _: None)
    shop.write("warehouse", [made[7] | {"number": 99}])
    shop.write("regions", of_regions(made[7:]))
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(context) == {"O7": "repaired"}
    assert shop.certify(context).state is WindowState.CERTIFIED


def test_records_behind_the_window_are_held_to_what_their_hop_compares(shop: ReconciledShop) -> None:
    """The rows are in the window, and their records come after it: the rest of the log is read for them."""
    make(shop)
    made = orders(range(8))
    shop.write("outbox", made)
    shop.send(made[4:])
    context = shop.open()
    shop.send(made[:4])
    rows = [order | WRONG.get(order["id"], {}) for order in made]
    shop.write("warehouse", rows)
    shop.write("regions", of_regions(rows))
    shop.judge(context)
    verdicts = {hop: {key: verdict for key, (verdict, _) in shop.found(context, hop).items()} for hop in HOPS}
    assert verdicts == {LEDGER_HOP: {}, STORE_HOP: {"O2": "mismatched"}, REGION_HOP: {"O3": "mismatched"}}


def test_columns_that_a_hop_compares_from_now_on_say_nothing_of_earlier_windows(shop: ReconciledShop) -> None:
    """All rows of the first window have another number than their records, and nothing compared it then."""
    make(shop)
    made = orders(range(8))
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", [order | {"number": 1000 + order["number"]} for order in made])
    shop.write("regions", of_regions(made))
    assert found(shop) == {}

    describe(shop, of_warehouse="{amount: 'decimal(8,2)', number: int}")
    new = orders(range(100, 104), 1)
    shop.write("outbox", new)
    shop.send(new)
    shop.write("warehouse", [order | ({"number": 7} if order["id"] == "O101" else {}) for order in new])
    shop.write("regions", of_regions(new))
    assert found(shop, 1) == {STORE_HOP: {"O101": "mismatched"}}


@pytest.mark.parametrize("is_upsert", [False, True], ids=["event", "upsert"])
def test_a_row_that_a_certified_window_saw_and_that_is_gone_has_vanished(shop: ReconciledShop, is_upsert: bool) -> None:
    """The first window had no doubt of the key: what it found is in the slices alone, which hold more columns."""
    make(shop, is_upsert=is_upsert)
    made = [order | ({"version": 1} if is_upsert else {}) for order in orders(range(8))]
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", [order | ({"number": 99} if order["id"] == "O4" else {}) for order in made])
    shop.write("regions", of_regions(made))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    assert explained(shop, "O4") == dict.fromkeys((LEDGER_HOP, STORE_HOP, REGION_HOP), "matched")
    shop.sql("delete from warehouse where id in ('O3', 'O4'); delete from regions where id = 'O5'")

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == dict.fromkeys(["O3", "O4"], ("vanished", "gone_since_certified"))
    assert shop.found(context, REGION_HOP) == {"O5": ("vanished", "gone_since_certified")}
    assert shop.evidence(context, STORE_HOP, "O3")["seen"] == {"window": 1, "revision": 1}
    assert (plan_window(context).plan, closed.state) == (None, WindowState.CERTIFIED)


def explained(shop: ReconciledShop, key: str) -> Mapping[str, str]:
    with connect(shop.journal) as journal:
        pipeline = as_last_read(journal, shop.pipeline)
        journey = trace(journal, pipeline, Storage.from_environment(), from_environment, key)
    return {item.hop: item.verdict for item in journey.judgements}


def test_a_record_that_is_sent_again_is_of_what_the_other_store_had_matched(shop: ReconciledShop) -> None:
    make(shop)
    resend = {"compensation": "{missing: redeliver}", "redeliver": "{to: source, despite: [regions-loader]}"}
    describe(shop, store_hop=resend, region_hop={"consumer_group": "regions-loader"})
    made = orders(range(8))
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", made[:7])
    shop.write("regions", of_regions(made))
    shop.commit_group("regions-loader", len(shop.read()))
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    shop.write("warehouse", made[7:])
    shop.write("regions", of_regions(made[7:]))
    verify_window(context, lambda *_: None, patience_seconds=0)

    assert shop.found(context, REGION_HOP) == {"O7": ("duplicate", "redelivered")}
    assert shop.evidence(context, REGION_HOP, "O7")["in_source"] is True
    counts = shop.verified_counts(context, REGION_HOP)
    assert (counts.matched, counts.duplicate, counts.extra_copies) == (7, 1, 1)
