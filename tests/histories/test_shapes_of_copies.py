"""Test that random changes of a topic's copy in another topic are found, and what it lacks is sent again, whatever the
records are made of.

make histories HISTORIES_ARGS="tests/histories/test_shapes_of_copies.py --histories 1000 --seed 1"
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from random import Random

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from tests.histories.shapes.changes import TYPES, Change, ChangedDay, draw_day
from tests.histories.shapes.formats import FORMATS, RecordFormat
from tests.histories.shapes.registry_formats import REGISTRY_FORMATS
from tests.histories.shapes.stores import COLUMNS
from tests.histories.shapes.verdicts import REPORTS, found_verdicts
from tests.histories.watched import PLAN_HEADER
from tests.world.consumer import Record
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, flow, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import insert_rows
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(120)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]

_FORMATS = (*FORMATS, *REGISTRY_FORMATS)


def test_random_changes_of_copies_are_found(seed: int, shops: NewShop) -> None:
    random = Random(f"copies {seed}")
    made, day = random.choice(_FORMATS), draw_day(seed)
    with shops(random.randint(1, 3)) as shop:
        _play(shop, made, day, REPORTS)
        context = shop.judged()
        verdicts = {hop: found_verdicts(shop, context, hop) for hop in (LEDGER_HOP, STORE_HOP)}
        assert verdicts == day.verdicts, made.name


def test_what_a_copy_lacks_is_sent_again_as_it_was(seed: int, shops: NewShop) -> None:
    random = Random(f"copies sent again {seed}")
    made, day = random.choice(_FORMATS), draw_day(seed, [Change.ROW_LOST])
    with shops(random.randint(1, 3)) as shop:
        copies = _play(shop, made, day, {**REPORTS, "missing": "redeliver"})
        context = shop.judge_and_ask_the_gate()
        assert found_verdicts(shop, context, STORE_HOP) == day.verdicts[STORE_HOP], made.name
        if day.changes:
            assert plan_window(context).plan is not None
            compensate_window(context, lambda _: None)
            again = [record for record in shop.read() if PLAN_HEADER in dict(record.headers)]
            shop.send_values(
                (
                    (str(record.key or b"", "utf-8"), record.value, made.headers(_order_of(day, made, record)))
                    for record in again
                ),
                topic=copies,
            )
            verify_window(context, lambda *_: None, patience_seconds=0)
        assert shop.certify(context).state.value == "certified", made.name
        assert _contents(shop.read(copies)) == sorted(_encoded(made, order) for order in day.ledger)


def _order_of(day: ChangedDay, made: RecordFormat, record: Record) -> Order:
    """Return the order whose record was sent again."""
    [order] = [order for order in day.ledger if _encoded(made, order) == (record.key, record.value)]
    return order


def _encoded(made: RecordFormat, order: Order) -> tuple[bytes, bytes]:
    return made.record_key(order).encode(), made.value(order)


def _contents(records: Iterable[Record]) -> list[tuple[bytes, bytes]]:
    return sorted((record.key or b"", record.value or b"") for record in records)


def _play(shop: ReconciledShop, made: RecordFormat, day: ChangedDay, remedies: Settings) -> str:
    """Have the ledger, the topic and its copy of a day, and the pipeline file; return the copy's name."""
    copies = shop.add_topic()
    shop.sql(f"create table outbox ({COLUMNS})")
    for name, content in made.files.items():
        (shop.file.parent / name).write_bytes(content)
    of_records = {**made.settings, "key": made.key}
    shop.describe(
        compare=flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
        ledger_hop={"compensation": "{missing: report}"},
        hop={"compensation": flow(remedies)},
        more_points={"orders": topic("log", shop.topic, **of_records), "warehouse": topic("log", copies, **of_records)},
        is_observing=True,
    )
    insert_rows(shop.dsn, "outbox", day.ledger)
    of_topics: list[tuple[list[Order], str | None]] = [(day.records, None), (day.rows, copies)]
    for orders, other in of_topics:
        shop.send_values(
            ((made.record_key(order), made.value(order), made.headers(order)) for order in orders), topic=other
        )
    return copies
