"""Test that keys are compared by their values: one key has other spellings in a ledger, in JSON and in a store."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.config.connections import from_environment
from makewhole.journal.database import connect
from makewhole.journey.trace import business_key
from makewhole.journey.trace import trace as trace_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError, RefusedError
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, as_last_read
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

Spelling = Callable[[int], Any]


def uuid_text(number: int) -> str:
    return f"{number:08x}-00ab-4cde-8f01-23456789abcd"


def rows(numbers: Sequence[int], spelling: Spelling, day: int = 0) -> list[dict[str, Any]]:
    """Return orders whose id is written so."""
    made = zip(numbers, orders(numbers, day), strict=True)
    return [{**order, "id": spelling(number)} for number, order in made]


def set_types(shop: ReconciledShop, ledger: str, store: str) -> None:
    """Make the key columns of the two tables, which are empty, ones of these types."""
    for table, column_type in (("outbox", ledger), ("warehouse", store)):
        shop.sql(f"alter table {table} drop column id; alter table {table} add column id {column_type}")


def trade(shop: ReconciledShop, spellings: tuple[Spelling, Spelling, Spelling], day: int = 0) -> None:
    """Take ten orders of a day through the shop, of which one is not sent and another one is not loaded."""
    in_ledger, in_topic, in_store = spellings
    numbers = range(1 + 10 * day, 11 + 10 * day)
    shop.write("outbox", rows(numbers, in_ledger, day))
    for record in rows(numbers[:-1], in_topic, day):
        shop.send_raw(json.dumps(record).encode(), day, key=None)
    shop.write("warehouse", rows(numbers[:-2], in_store, day))


def findings(shop: ReconciledShop, context: WindowContext) -> dict[str, dict[str, tuple[str, str]]]:
    return {hop: shop.found(context, hop) for hop in (LEDGER_HOP, STORE_HOP)}


def whole_text(number: int) -> str:
    return str(number)


def two_places(number: int) -> str:
    return f"{number}.00"


@pytest.mark.parametrize(
    ("ledger", "store", "spellings", "key"),
    [
        pytest.param("numeric(10,2)", "numeric(12,4)", (int, int, int), str, id="a number with places"),
        pytest.param("numeric(10,2)", "text", (int, float, two_places), str, id="a number in a text column"),
        pytest.param("bigint", "text", (int, float, lambda n: f"{n:04d}"), str, id="an integer in a text column"),
        pytest.param("uuid", "text", (uuid_text, lambda n: uuid_text(n).upper(), lambda n: uuid_text(n).upper()),
                     uuid_text, id="a uuid in capitals"),
        pytest.param("timestamptz", "timestamp", (
            lambda n: f"2013-01-01T00:00:{n:02d}Z",
            lambda n: f"2013-01-01T01:00:{n:02d}.000+01:00",
            lambda n: f"2013-01-01 00:00:{n:02d}",
        ), lambda n: f"2013-01-01T00:00:{n:02d}.000000Z", id="a moment"),
        pytest.param("date", "date", (lambda n: f"2013-01-{n:02d}",) * 3, lambda n: f"2013-01-{n:02d}", id="a date"),
        pytest.param("char(6)", "char(6)", (whole_text, lambda n: f"{n:<6}", whole_text), str, id="a padded text"),
    ],
)  # fmt: skip
def test_equal_values_are_one_key_however_they_are_written(
    shop: ReconciledShop, ledger: str, store: str, spellings: tuple[Spelling, Spelling, Spelling], key: Spelling
) -> None:
    set_types(shop, ledger, store)
    trade(shop, spellings)

    context = shop.judged()

    assert findings(shop, context) == {
        LEDGER_HOP: {key(10): ("missing", "never_produced")},
        STORE_HOP: {key(9): ("missing", "lost_after_topic")},
    }
    assert shop.counts(context, STORE_HOP).matched == 8


def test_repairs_find_the_rows_of_a_key_in_every_spelling(shop: ReconciledShop) -> None:
    """A produced record, an inserted and an updated row, and a second row moved aside, in a column of texts."""
    set_types(shop, "numeric(10,2)", "text")
    shop.describe(
        ledger_hop={"compensation": "{missing: produce}"},
        hop={"compensation": "{missing: upsert, mismatched: upsert, duplicate: quarantine}"},
    )
    trade(shop, (int, float, two_places))
    shop.write("warehouse", rows([3], lambda n: f"{n}.0"))
    shop.sql("update warehouse set amount = 0 where id = '4.00'")
    context = shop.judge_and_ask_the_gate()
    assert findings(shop, context) == {
        LEDGER_HOP: {"10": ("missing", "never_produced")},
        STORE_HOP: {
            "3": ("duplicate", "written_before_committed"),
            "4": ("mismatched", "value_differs"),
            "9": ("missing", "lost_after_topic"),
        },
    }

    plan_window(context)
    compensate_window(context, lambda _: None)
    (produced,) = [record for record in shop.read() if dict(record.headers).get("makewhole-plan") is not None]
    shop.write("warehouse", rows([10], two_places))
    verify_window(context, lambda *_: None)
    closed = shop.certify(context)

    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    assert produced.key_text == "10"
    assert shop.sql("select id, amount::text from warehouse order by number") == [
        ("1.00", "1.50"),
        ("2.00", "2.50"),
        ("3.00", "3.50"),
        ("4.00", "4.50"),
        ("5.00", "5.50"),
        ("6.00", "6.50"),
        ("7.00", "7.50"),
        ("8.00", "8.50"),
        ("9.0", "9.50"),
        ("10.00", "10.50"),
    ]


def test_what_is_no_value_of_the_type_has_no_key_and_its_row_and_record_say_why(shop: ReconciledShop) -> None:
    set_types(shop, "bigint", "text")
    in_json = ["100.0", "1e2", '"1_2"', "18446744073709551616", "true", '"１２"', '" 7"', "null", '"007"']
    shop.write("outbox", rows([100, 7], int))
    for text in in_json:
        (order,) = orders([7 if text == '"007"' else 100])
        shop.send_raw(json.dumps(order | {"id": 0}).replace('"id": 0', f'"id": {text}').encode())
    shop.write("warehouse", rows([100, 7], whole_text) + rows([0, 1, 2, 3], lambda n: ["1_2", " 8", "abc", ""][n]))

    context = shop.judged()

    manifests = shop.manifests(context)
    assert shop.accounting(context)["undecodable"] == manifests["orders"]["undecodable"] == 6
    assert manifests["warehouse"]["undecodable"] == 4
    assert [manifest["key_layout"] for manifest in manifests.values()] == [["bigint"]] * 3
    reasons = {
        point: context.storage.read_parquet(manifests[point]["undecodable_files"], ["place", "reason"])
        for point in ("orders", "warehouse")
    }
    assert {point: None if frame is None else sorted(frame["reason"]) for point, frame in reasons.items()} == {
        "orders": ["key is not a bigint"] * 5 + ["key is null"],
        "warehouse": ["key is null or empty, or not a bigint"] * 4,
    }
    verdicts = findings(shop, context)
    assert verdicts[LEDGER_HOP] == {"100": ("duplicate", "retry_without_idempotence")}
    assert set(verdicts[STORE_HOP]) <= {"100"}


def test_leading_zeros_are_another_key_under_a_text_and_none_under_a_declared_number(shop: ReconciledShop) -> None:
    trade(shop, (lambda n: f"{n:03d}",) * 3)
    shop.send_raw(json.dumps(orders([7])[0] | {"id": 7}).encode())
    context = shop.judged()
    assert findings(shop, context) == {
        LEDGER_HOP: {"010": ("missing", "never_produced"), "7": ("unexpected", "not_in_source")},
        STORE_HOP: {"009": ("missing", "lost_after_topic"), "7": ("missing", "lost_after_topic")},
    }


def test_types_that_cannot_meet_are_named_when_the_window_is_opened(shop: ReconciledShop) -> None:
    set_types(shop, "uuid", "bigint")
    with pytest.raises(ConfigurationError) as caught:
        shop.ask()
    assert str(caught.value) == (
        "pipeline file: points.warehouse.key: outbox.id is of type uuid and warehouse.id of type bigint: no value is "
        "both. Name columns that hold the same keys, or compare them as texts: `key: {id: string}`"
    )
    assert shop.journal_sql("select count(*) from makewhole.window") == [(0,)]

    shop.describe(key="{id: uuid}")
    with pytest.raises(ConfigurationError) as caught:
        shop.ask()
    assert str(caught.value) == (
        "pipeline file: points.warehouse.key: warehouse.id is of type bigint, of which no value is a uuid. Name "
        "columns that hold the same keys, or compare them as texts: `key: {id: string}`"
    )

    shop.describe(key="{id: string}")
    assert shop.ask().window.key_layout["orders"] == ("string",)


def test_a_pipeline_in_operation_is_not_silently_read_by_other_spellings(shop: ReconciledShop) -> None:
    """Its index has hashes of the texts of before: another spelling of a key would never be found in it."""
    set_types(shop, "numeric(10,2)", "numeric(10,2)")
    shop.describe(key="{id: string}")
    as_before = (two_places,) * 3
    trade(shop, as_before)
    first = shop.judged()
    assert set(shop.found(first, STORE_HOP)) == {"9.00"}
    shop.describe()
    trade(shop, as_before, day=1)

    with pytest.raises(RefusedError) as caught:
        shop.ask(1)

    assert str(caught.value) == (
        "shop: the windows before compared outbox.id as string, and this one would as decimal (outbox.id is "
        "numeric(10,2), warehouse.id is numeric(10,2)); keys that are kept from before (the key index, keys handed "
        "over) would not be found under their new spelling. To go on as before, write `key: {id: string}` at "
        "points.outbox. To compare them as decimal, give the pipeline another name: it begins a history of its own, "
        "from `start:` on"
    )
    shop.describe(key="{id: string}")
    shop.send_raw(json.dumps(rows([1], two_places)[0]).encode(), 1)
    second = shop.judged(1)
    assert set(shop.found(second, LEDGER_HOP)) == {"20.00", "1.00"}


@pytest.mark.extended
def test_a_pipeline_whose_keys_are_encoded_as_before_goes_on(shop: ReconciledShop) -> None:
    set_types(shop, "bigint", "integer")
    shop.describe(key="{id: string}")
    trade(shop, (int,) * 3)
    first = shop.judged()
    assert set(shop.found(first, STORE_HOP)) == {"9"}
    shop.describe(key="{id: bigint}")
    trade(shop, (int, whole_text, int), day=1)
    shop.send_raw(json.dumps(rows([1], int)[0]).encode(), 1)

    second = shop.judged(1)

    assert shop.found(second, LEDGER_HOP) == {
        "1": ("duplicate", "retry_without_idempotence"),
        "20": ("missing", "never_produced"),
    }


@pytest.mark.extended
def test_a_key_that_a_person_wrote_is_read_by_its_type(shop: ReconciledShop) -> None:
    set_types(shop, "bigint", "uuid")
    shop.describe(has_ledger=False)
    numbers = range(3)
    for record in rows(numbers, uuid_text):
        shop.send_raw(json.dumps(record).encode())
    shop.write("warehouse", rows(numbers, uuid_text))
    shop.judged()
    with connect(shop.journal) as journal:
        pipeline = as_last_read(journal, shop.pipeline)
        key = business_key(pipeline, uuid_text(2).upper())
        journey = trace_key(journal, pipeline, Storage.from_environment(), from_environment, key)
        with pytest.raises(ConfigurationError) as caught:
            business_key(pipeline, "no uuid")
    assert key == uuid_text(2)
    assert [len(stop.copies) for stop in journey.stops] == [1, 1]
    assert str(caught.value) == (
        "command line: KEY: is no key of pipeline shop: key is not a uuid. Write the key's text, as `makewhole "
        "findings` shows keys"
    )


def test_a_key_that_is_read_from_other_columns_than_before_is_refused(shop: ReconciledShop) -> None:
    """It would have as many parts, of the same type, and no key of before would be found again."""
    shop.describe(hop={"consumer_group": "loader"})
    shop.sql("alter table outbox add code text; alter table warehouse add code text")
    shop.trade(orders(range(5)), unloaded=orders(range(4, 5)))
    shop.commit_group("loader", 4)
    assert shop.whole_way()[1].handed_over == 1
    before = shop.file.read_text()
    shop.describe(key="region", topic_key='"$.region"', hop={"consumer_group": "loader"})

    with pytest.raises(RefusedError) as caught:
        shop.ask(1)

    assert str(caught.value) == (
        'shop: the windows before knew outbox by id, orders by "$.id", warehouse by id, and this one would know outbox '
        'by region, orders by "$.region", warehouse by region; what is kept from before (the key index, keys handed '
        'over) would not be found again. To go on as before, write `key: id` at points.outbox, `key: "$.id"` at '
        "points.orders, `key: id` at points.warehouse. To go by the other key, give the pipeline another name: it "
        "begins a history of its own, from `start:` on"
    )
    with pytest.raises(RefusedError, match="this one would know outbox by region"):
        shop.ask(0)
    shop.file.write_text(before)
    assert shop.ask(1).window.number == 2


def test_a_key_column_with_a_new_name_is_the_same_key(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} rename id to code")
    shop.describe(key="code", topic_key='"$.code"')
    later = [{**order, "code": order["id"]} for order in orders(range(100, 105), 1)]
    repeated = {**orders([3], 1)[0], "code": "O3"}
    for order in (*later, repeated):
        shop.send_raw(json.dumps(order).encode(), 1)
    for table in ("outbox", "warehouse"):
        shop.write(table, [{name: value for name, value in order.items() if name != "id"} for order in later])

    second = shop.judged(1)

    assert shop.found(second, LEDGER_HOP) == {"O3": ("duplicate", "retry_without_idempotence")}
