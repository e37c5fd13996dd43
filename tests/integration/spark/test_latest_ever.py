"""Test that what was judged stays judged: the latest version of any window counts, and rows that were rewritten are
held to their records."""

import shutil
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

import pytest
from confluent_kafka import Producer

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError
from makewhole.model.window import WindowState
from tests.world.combinations import with_every_change
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

STALE = ("mismatched", "stale_version")
DIFFERS = ("mismatched", "value_differs")
UPSERT = {"compensation": "{missing: upsert, mismatched: upsert}"}


def versioned(shop: ReconciledShop, kind: str, **more: object) -> ReconciledShop:
    """Give the tables versions of a type, and a column that nothing compares."""
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column version {kind}, add column remark text default 'own'")
    shop.more_columns["version"] = "bigint" if kind == "bigint" else "string"
    said = {"topic_key": "kafka.key", "is_upsert": True, "has_version": True, "hop": UPSERT, "has_ledger": False}
    shop.describe(**{**said, **more})  # type: ignore[arg-type]
    return shop


def version(numbers: Iterable[int], amount: int, number: object, day: int = 0) -> list[Order]:
    """A version of these orders."""
    at = (BORN + day * DAY + timedelta(hours=amount)).isoformat()
    return [order | {"version": number, "amount": f"{amount}.25", "at": at} for order in orders(numbers)]


def bury(shop: ReconciledShop, keys: Iterable[str], day: int) -> None:
    """Tombstones."""
    client = Producer({"bootstrap.servers": shop.bootstrap})
    at = BORN + day * DAY + timedelta(hours=5)
    for key in keys:
        client.produce(shop.topic, partition=0, key=key, value=None, timestamp=int(at.timestamp() * 1000))
    assert client.flush(30) == 0


def load(shop: ReconciledShop, made: Iterable[Order]) -> None:
    """Write orders over the rows of their keys, whatever their versions, as a blind loader does."""
    rows = [*made]
    for order in rows:
        shop.sql("delete from warehouse where id = %s", order["id"])
    shop.write("warehouse", rows)


def repaired(shop: ReconciledShop, day: int) -> dict[str, str]:
    """Judge a day, repair it, and return what became of each finding."""
    context = shop.judge_and_ask_the_gate(day)
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    return shop.outcomes(context)


KINDS = {
    "bigint": (4, 5),
    "numeric(12,3)": ("4.125", "4.25"),
    "timestamptz": ("2025-03-01T10:00:00+02:00", "2025-03-01T09:30:00Z"),
    "timestamp": ("2025-03-01T08:00:00", "2025-03-01 09:30:00"),
    "date": ("2025-02-28", "2025-03-01"),
}


@pytest.mark.parametrize("kind", with_every_change(KINDS, first=2))
def test_an_older_version_that_is_sent_again_and_loaded_is_stale(shop: ReconciledShop, kind: str) -> None:
    older, newer = KINDS[kind]
    versioned(shop, kind)
    first = version(range(4), 5, newer)
    shop.send(first)
    shop.write("warehouse", first)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    again = version(range(2), 4, older, day=1)
    shop.send(again)
    load(shop, again[:1])
    shop.sql("update warehouse set remark = 'kept' where id = 'O0'")

    context, closed = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O0": STALE}
    assert closed.state is WindowState.GAPS
    assert shop.evidence(context, STORE_HOP, "O0")["latest"]["offset"] == 0
    assert repaired(shop, 1) == {"O0": "repaired"}
    rows = shop.sql(
        "select amount::text, version = %s::" + kind + ", remark from warehouse where id = 'O0'", str(newer)
    )
    assert rows == [("5.25", True, "kept")]
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED


def test_a_row_of_an_earlier_window_that_was_rewritten_gets_its_values_back(shop: ReconciledShop) -> None:
    """The loader was set back: its rows have today's time, their records are yesterday's."""
    shop.describe(has_ledger=False, hop=UPSERT)
    made = orders(range(4))
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    later = orders(range(10, 12), day=1)
    shop.send(later)
    shop.write("warehouse", later)
    moment = (BORN + DAY + timedelta(hours=3)).isoformat()
    shop.sql("update warehouse set at = %s where id in ('O0', 'O1', 'O2')", moment)
    shop.sql("update warehouse set amount = 99, region = 'XX' where id = 'O1'")

    context, closed = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O1": DIFFERS}
    assert closed.state is WindowState.GAPS
    assert shop.evidence(context, STORE_HOP, "O1")["source"] == [
        {"place": "0:1", "partition": 0, "offset": 1}
        | {"row_hash": shop.evidence(context, STORE_HOP, "O1")["source"][0]["row_hash"]}
    ]
    assert repaired(shop, 1) == {"O1": "repaired"}
    assert shop.sql("select amount::text, region from warehouse where id = 'O1'") == [("1.50", "XX")]
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED


def test_a_version_that_was_rewritten_behind_its_record_gets_its_values_back(shop: ReconciledShop) -> None:
    versioned(shop, "bigint")
    shop.send([*version(range(4), 5, 5), *version([9], 5, 5)])
    shop.write("warehouse", [*version(range(4), 5, 5), *version([9], 5, 5)])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    later = version([10], 6, 6, day=1)
    shop.send(later)
    shop.write("warehouse", later)
    moment = (BORN + DAY + timedelta(hours=3)).isoformat()
    shop.sql("update warehouse set amount = 99, at = %s where id = 'O1'", moment)

    context, closed = shop.whole_way(1)

    assert (shop.found(context, STORE_HOP), closed.state) == ({"O1": DIFFERS}, WindowState.GAPS)
    assert repaired(shop, 1) == {"O1": "repaired"}
    assert shop.sql("select amount::text from warehouse where id = 'O1'") == [("5.25",)]


def test_a_deletion_after_a_version_is_neither_undone_nor_missed(shop: ReconciledShop) -> None:
    versioned(shop, "bigint")
    made = version(range(4), 2, 2)
    shop.send(made)
    bury(shop, ["O0", "O1"], 0)
    shop.write("warehouse", made[1:])

    context, _ = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O1": STALE}
    bury(shop, ["O2"], 1)
    shop.sql("delete from warehouse where id in ('O1', 'O2')")
    shop.send(version([1], 3, 1, day=1))
    shop.write("warehouse", version([1], 3, 1, day=1))
    second, closed = shop.whole_way(1)
    assert (shop.found(second, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    first = shop.open()
    shop.judge(first)
    assert shop.found(first, STORE_HOP) == {}


def test_a_row_that_comes_back_after_its_deletion_is_stale(shop: ReconciledShop) -> None:
    versioned(shop, "bigint")
    made = version(range(3), 2, 2)
    shop.send(made)
    bury(shop, ["O0"], 0)
    shop.write("warehouse", made[1:])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.send(version([5], 2, 2, day=1))
    shop.write("warehouse", [*version([5], 2, 2, day=1), *version([0], 2, 2, day=1)])

    context, _ = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O0": STALE}
    assert repaired(shop, 1) == {"O0": "refused"}


def test_what_is_no_version_leaves_the_key_undecidable_where_it_matters(shop: ReconciledShop) -> None:
    versioned(shop, "bigint")
    made = version(range(3), 5, 5)
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.send([*version([0], 6, "v6", day=1), *version([1], 5, "v6", day=1), *version([7], 6, "v6", day=1)])
    shop.write("warehouse", version([7], 6, 6, day=1))

    context, closed = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O0": ("undecidable", "unreadable_version")}
    assert closed.state is WindowState.NOT_KNOWN
    assert plan_window(context).plan is None


def without_version(made: Iterable[Order]) -> list[Order]:
    return [{name: order[name] for name in order if name != "version"} for order in made]


def test_a_record_without_a_version_after_one_that_has_leaves_the_key_undecidable(shop: ReconciledShop) -> None:
    """The producer ceased to number its records, and a loader that asks for no numbers has taken them: the older
    record that has one is not written over them. Records from before there were numbers are older than those."""
    versioned(shop, "bigint")
    first = [*version(range(4), 5, 5), *version([4], 5, None)]
    shop.send([*without_version(version([5], 4, None)), *first, *version([5], 6, 6)])
    load(shop, [*first, *version([5], 6, 6)])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    later = without_version([*version([0, 1, 4], 6, None, day=1), *version([2], 5, None)])
    shop.send([*later, *version([1], 7, 7, day=1)])
    load(shop, [*later, *version([3], 4, 4, day=1)])

    assert repaired(shop, 1) == {"O0": "open", "O1": "repaired", "O3": "repaired"}

    assert shop.sql("select amount, version from warehouse where id = 'O0'") == [(Decimal("6.25"), None)]
    shop.send(version([0], 5, 5, day=2))  # the last version that has a number, once more
    load(shop, version([0], 5, 5, day=2))
    context, _ = shop.whole_way(2)

    assert shop.found(context, STORE_HOP) == {"O0": ("undecidable", "unreadable_version")}


@pytest.mark.parametrize("kind", ["text", "double precision", "uuid"])
def test_a_column_that_is_no_version_is_refused_when_a_window_is_opened(shop: ReconciledShop, kind: str) -> None:
    versioned(shop, kind, has_ledger=True)

    with pytest.raises(ConfigurationError) as error:
        shop.ask()

    assert [problem.path for problem in error.value.problems] == ["points.outbox.version", "points.warehouse.version"]
    assert f"warehouse.version (point warehouse) is of type {kind}, which is no version" in str(error.value)


def test_versions_of_two_kinds_are_refused_when_a_window_is_opened(shop: ReconciledShop) -> None:
    versioned(shop, "bigint", has_ledger=True)
    shop.sql("alter table warehouse drop column version, add column version timestamptz")

    with pytest.raises(ConfigurationError, match=r"its versions \(timestamp with time zone\) are not ordered with"):
        shop.ask()


def test_a_row_whose_record_is_nowhere_any_more_is_left_and_said(shop: ReconciledShop) -> None:
    """Its archive was removed, and Kafka has deleted the record."""
    shop.describe(has_ledger=False, hop=UPSERT)
    made = orders(range(4))
    shop.send(made)
    shop.write("warehouse", made)
    first, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    later = orders(range(10, 12), day=1)
    shop.send(later)
    shop.write("warehouse", later)
    moment = (BORN + DAY + timedelta(hours=3)).isoformat()
    shop.sql("update warehouse set at = %s, amount = 99 where id = 'O1'", moment)
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, STORE_HOP) == {"O1": DIFFERS}
    shutil.rmtree(f"{Storage.from_environment().uri(first.window.prefix)}/orders/archive")
    shop.delete_records({0: 4})

    plan_window(context)

    outcome, reason = shop.outcome_of(context, STORE_HOP, "O1")
    assert outcome in ("open", "refused")
    assert "its record in orders is in no archive and on no broker any more" in (reason or "")
    assert shop.sql("select amount::text from warehouse where id = 'O1'") == [("99.00",)]


def test_a_window_that_is_judged_again_is_not_disturbed_by_a_row_that_was_set_back_later(shop: ReconciledShop) -> None:
    versioned(shop, "bigint")
    first = version(range(4), 5, 5)
    shop.send(first)
    shop.write("warehouse", first)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    newer = [*version(range(2), 6, 6, day=1), *version([9], 6, 6, day=1)]
    shop.send(newer)
    load(shop, newer)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    again, closed = shop.whole_way()

    assert (shop.found(again, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


@pytest.mark.parametrize("remedy", ["report", "upsert"])
@pytest.mark.parametrize("kind", ["bigint", "timestamptz"])
def test_a_row_with_the_values_of_the_latest_version_and_an_older_number_is_not_whole(
    shop: ReconciledShop, kind: str, remedy: str
) -> None:
    older, newer = KINDS[kind]
    versioned(shop, kind, hop={"compensation": f"{{missing: upsert, mismatched: {remedy}}}"})
    first = version(range(4), 5, older)
    latest = [order | {"version": newer} for order in first]
    for made in (first, latest):
        shop.send(made)
    shop.write("warehouse", [*latest[:3], first[3]])

    context, closed = shop.whole_way()
    assert (shop.found(context, STORE_HOP), closed.state) == ({"O3": STALE}, WindowState.GAPS)
    assert repaired(shop, 0) == {"O3": "repaired" if remedy == "upsert" else "open"}
    held = shop.sql(f"select version = %s::{kind} from warehouse where id = 'O3'", str(newer))
    assert held == [(remedy == "upsert",)]
