"""Test that random changes of a day are found, and nothing else, whatever the records and the store are made of.

make histories HISTORIES_ARGS="tests/histories/test_shapes.py --histories 1000 --seed 1"
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from random import Random

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from tests.histories.shapes.changes import OF_ROWS, TYPES, ChangedDay, draw_day
from tests.histories.shapes.formats import FORMATS, RecordFormat, json_value
from tests.histories.shapes.registry_formats import REGISTRY_FORMATS
from tests.histories.shapes.stores import STORES, StoreKind
from tests.histories.shapes.verdicts import REPAIRS, REPORTS, differing_rows, found_verdicts
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, flow, store, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import insert_rows
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(120)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]


@pytest.mark.parametrize("record_format", [*FORMATS, *REGISTRY_FORMATS], ids=lambda shape: shape.name)
def test_random_changes_are_found_and_nothing_else(seed: int, record_format: RecordFormat, shops: NewShop) -> None:
    kind, day = Random(seed).choice(STORES), draw_day(seed)
    with shops(Random(seed).randint(1, 3)) as shop:
        _play(shop, record_format, kind, day, REPORTS)
        context = shop.judged()
        assert {hop: found_verdicts(shop, context, hop) for hop in (LEDGER_HOP, STORE_HOP)} == day.verdicts, kind.name


@pytest.mark.parametrize("record_format", [*FORMATS, *REGISTRY_FORMATS], ids=lambda shape: shape.name)
def test_a_store_is_repaired_to_what_was_sent(seed: int, record_format: RecordFormat, shops: NewShop) -> None:
    kind = Random(seed).choice([store for store in STORES if store.is_writable])
    day = draw_day(seed, OF_ROWS)
    with shops(1) as shop:
        _play(shop, record_format, kind, day, REPAIRS)
        context = shop.judge_and_ask_the_gate()
        if day.changes:
            frozen = plan_window(context)
            assert frozen.plan is not None
            compensate_window(context, lambda _: None)
            verify_window(context, lambda *_: None, patience_seconds=0)
        assert shop.certify(context).state.value == "certified", kind.name
        assert differing_rows(shop, kind, day.repaired_rows) == []


def test_random_changes_of_lines_are_found_and_repaired(seed: int, shops: NewShop) -> None:
    """Records of no, one or several orders, some of which are sent again: each order has a row of its own."""
    random = Random(seed)
    kind, day = random.choice([store for store in STORES if store.is_writable]), draw_day(seed, OF_ROWS)
    with shops(random.randint(1, 3)) as shop:
        kind.make(shop)
        _describe_lines(shop, kind)
        shop.send_values((str(number), json_value(record), {}) for number, record in _in_records(day.records, random))
        insert_rows(shop.dsn, kind.written, map(kind.row, day.rows))
        context = shop.judge_and_ask_the_gate()
        assert found_verdicts(shop, context, STORE_HOP) == day.verdicts[STORE_HOP], kind.name
        if day.changes:
            assert plan_window(context).plan is not None
            compensate_window(context, lambda _: None)
            verify_window(context, lambda *_: None, patience_seconds=0)
        assert shop.certify(context).state.value == "certified", kind.name
        assert differing_rows(shop, kind, day.repaired_rows) == []


def _in_records(orders: list[Order], random: Random) -> Iterator[tuple[int, Order]]:
    """Yield records with all orders, few in each, some of them twice."""
    left, number = [*orders], 0
    while left:
        size = random.choice([0, 1, 1, 2, 5])
        lines, left = left[:size], left[size:]
        record = {"number": number, "of": {"lines": lines if lines or random.random() < 0.5 else None}}
        yield from [(number, record)] * random.choice([1, 1, 1, 2])
        number += 1


def _describe_lines(shop: ReconciledShop, kind: StoreKind) -> None:
    lines = {"explode": '"$.of.lines[*]"', "columns": flow({name: f'"$.of.lines[*].{name}"' for name in TYPES})}
    shop.describe(
        has_ledger=False,
        compare=flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
        hop={"compensation": flow(REPAIRS), "write": "{}"},
        more_points={
            "orders": topic("log", shop.topic, key='"$.of.lines[*].id"', **lines),
            "warehouse": {**store("db", "warehouse"), **kind.settings},
        },
        is_observing=True,
    )


def _play(
    shop: ReconciledShop, record_format: RecordFormat, kind: StoreKind, day: ChangedDay, remedies: Settings
) -> None:
    """Have the ledger, the topic and the store of a day, and the pipeline file."""
    kind.make(shop)
    for name, content in record_format.files.items():
        (shop.file.parent / name).write_bytes(content)
    shop.describe(
        compare=flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
        ledger_hop={"compensation": "{missing: report}"},
        hop={"compensation": flow(remedies)},
        more_points={
            "orders": topic("log", shop.topic, key=record_format.key, **record_format.settings),
            "warehouse": {**store("db", "warehouse"), **kind.settings},
        },
        is_observing=True,
    )
    insert_rows(shop.dsn, "outbox", day.ledger)
    shop.send_values(
        (record_format.record_key(record), record_format.value(record), record_format.headers(record))
        for record in day.records
    )
    insert_rows(shop.dsn, kind.written, map(kind.row, day.rows))
