"""Test a pipeline file that reads versions from another field, or has another semantics, than the windows before: what
these read is in no order with what is read now."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_latest_ever import DIFFERS, UPSERT, load, version, versioned
from tests.integration.spark.test_purged_ledgers import HOP
from tests.integration.spark.test_survivors import repair
from tests.world.orders import BORN, COLUMNS, DAY, Order, orders
from tests.world.pipeline_file import fed_by_ledgers
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

OF_NOW = {"another": "seq", "none": None}


def certified_day(shop: ReconciledShop, field: str) -> None:
    """Certify a day of four orders, numbered from 100 on; from then on another field has the versions, or none."""
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column seq bigint")
    shop.more_columns["seq"] = "bigint"
    versioned(shop, "bigint")
    first = sequenced(range(4), 5, 100, seq=None)
    shop.send(first)
    shop.write("warehouse", first)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    text = shop.file.read_text().replace('seq: "bigint"', 'version: "bigint"')
    if field == "another":
        text = text.replace('version: "$.version"', 'version: "$.seq"').replace("version: version", "version: seq")
    else:
        text = text.replace(', version: "$.version"', "").replace(", version: version", "")
        text = text.replace('version: "bigint"', 'version: "bigint", seq: "bigint"')
    shop.file.write_text(text)


def sequenced(numbers: range, amount: int, of_before: int, *, seq: int | None, day: int = 0) -> list[Order]:
    return [order | {"seq": seq} for order in version(numbers, amount, of_before, day=day)]


@pytest.mark.parametrize("field", OF_NOW)
def test_versions_of_another_field_are_newer_whatever_their_numbers(shop: ReconciledShop, field: str) -> None:
    certified_day(shop, field)
    newer = sequenced(range(2), 6, 7, seq=1, day=1)
    shop.send(newer)
    load(shop, newer)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED

    newest = sequenced(range(1), 7, 8, seq=2, day=2)
    shop.send(newest)
    load(shop, newer[:1])
    context = shop.judge_and_ask_the_gate(2)
    assert {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()} == {"O0": "mismatched"}
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert shop.sql("select amount::text from warehouse where id = 'O0'") == [("7.25",)]


@pytest.mark.parametrize("field", OF_NOW)
def test_rows_of_versions_of_another_field_are_held_to_their_records(shop: ReconciledShop, field: str) -> None:
    certified_day(shop, field)
    shop.sql("update warehouse set at = at + interval '1 day' where id <> 'O3'")
    shop.sql("update warehouse set amount = 99 where id = 'O1'")
    later = sequenced(range(10, 12), 5, 3, seq=3, day=1)
    shop.send(later)
    shop.write("warehouse", later)

    context = shop.judge_and_ask_the_gate(1)

    assert shop.found(context, STORE_HOP) == {"O1": DIFFERS}
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert shop.sql("select amount::text from warehouse where id = 'O1'") == [("5.25",)]


SEMANTICS = ("event upsert", "upsert event")


@pytest.mark.parametrize("change", SEMANTICS)
def test_rows_stay_whose_window_read_several_records_as_something_else(shop: ReconciledShop, change: str) -> None:
    before, now = change.split()
    shop.describe(has_ledger=False, hop=UPSERT, topic_key="kafka.key", is_upsert=before == "upsert")
    made = orders(range(4))
    again = [order | {"amount": "77.00"} for order in made[:2]]
    shop.send(made)
    shop.send(again)
    shop.write("warehouse", made if before == "event" else [*again, *made[2:]])
    shop.whole_way()
    shop.describe(has_ledger=False, hop=UPSERT, topic_key="kafka.key", is_upsert=now == "upsert")
    load(shop, [order | {"at": (BORN + DAY).isoformat()} for order in again])
    later = orders(range(10, 12), day=1)
    shop.send(later)
    shop.write("warehouse", later)

    context, closed = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_values_that_were_compared_otherwise_are_not_known_of_a_purged_ledger(shop: ReconciledShop) -> None:
    def describe(compare: str) -> None:
        compensation = "{limits: {share: 1.0}, missing: upsert, mismatched: upsert, unexpected: quarantine}"
        text = fed_by_ledgers(
            ["outbox"], hop={}, columns=COLUMNS, late="3d", compare=compare, compensation=compensation
        )
        shop.file.write_text(text)

    describe('{amount: "decimal(8,2)"}')
    first = orders(range(6))
    shop.write("outbox", first)
    shop.write("warehouse", [order | {"number": 1000 + order["number"]} for order in first])
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED

    describe('{amount: "decimal(8,2)", number: int}')
    shop.sql("delete from outbox")
    shop.sql("update warehouse set at = at + interval '1 day'")
    later = orders(range(100, 106), 1)
    shop.write("outbox", later)
    shop.write("warehouse", later)
    context = shop.judge_and_ask_the_gate(1)

    repair(shop, context)

    assert shop.sql("select count(*) from warehouse where number >= 1000") == [(6,)]
    assert shop.found(context, HOP) == {}
