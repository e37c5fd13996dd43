"""Test a pipeline whose records count milliseconds, seconds and days where its tables have timestamps and dates."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.places.compared_columns import compared_everywhere
from makewhole.model.window import WindowState
from makewhole.window.context import connections_of
from makewhole.window.opening.readable import problems_of_tables
from tests.world.orders import BORN
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FILE = """
version: 2
pipeline: shop
start: earliest
settle: 0s
compare: {{at: timestamp(3), due: date}}
points:
  outbox: {{kind: ledger, connection: db, table: outbox, key: id, time: at, version: seen}}
  orders:
    kind: topic
    connection: log
    topic: {topic}
    key: "$.id"
    version: {{field: "$.seen", as: timestamp(ms)}}
    columns:
      at: {{field: "$.at", as: timestamp(ms)}}
      due: {{field: "$.terms.due", as: date(days)}}
      paid: {{field: "$.paid", as: timestamp(s)}}
  warehouse: {{kind: store, connection: db, table: warehouse, key: id, time: at, version: seen}}
hops:
  - {{from: outbox, to: orders, semantics: upsert, compensation: {{missing: produce}}}}
  - from: orders
    to: warehouse
    semantics: upsert
    where: at >= '2025-03-01 00:00:05Z'
    write: {{paid: timestamp}}
    compensation: {{missing: upsert, mismatched: upsert}}
compensation: {{limits: {{share: 1.0}}}}
"""
_COLUMNS = "(id text, at timestamptz, due date, paid timestamp, seen timestamptz)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Counted:
    """The shop with orders that are counted in the topic."""

    def __init__(self, shop: ReconciledShop) -> None:
        self.shop = shop
        shop.file.write_text(FILE.format(topic=shop.topic))
        for table in ("outbox", "warehouse"):
            shop.sql(f"drop table if exists {table}; create table {table} {_COLUMNS}")

    def insert(self, table: str, number: int, **other: str) -> None:
        values = {**_row(number), **other}
        names, texts = ", ".join(values), ", ".join(f"'{value}'" for value in values.values())
        self.shop.sql(f"insert into {table} ({names}) values ({texts})")

    def send(self, *numbers: int, **other: Any) -> None:
        client = producer(self.shop.bootstrap)
        for number in numbers:
            value = json.dumps({**_record(number), **other})
            client.produce(self.shop.topic, key=f"O{number}", value=value, timestamp=_record(number)["at"])
        assert client.flush(30) == 0

    def row(self, number: int) -> tuple[Any, ...]:
        [row] = self.shop.sql(f"select id, at, due, paid, seen from warehouse where id = 'O{number}'")
        return row


def _moment(number: int) -> datetime:
    return BORN + timedelta(seconds=number, milliseconds=7 * number)


def _row(number: int) -> Mapping[str, str]:
    due = date(1969, 12, 28) + timedelta(days=number)
    return {
        "id": f"O{number}",
        "at": _moment(number).isoformat(),
        "due": str(due),
        "paid": (BORN + timedelta(minutes=number)).replace(tzinfo=None).isoformat(),
        "seen": _moment(number + 100).isoformat(),
    }


def _record(number: int) -> dict[str, Any]:
    return {
        "id": f"O{number}",
        "at": _milliseconds(_moment(number)),
        "terms": {"due": number - 4},
        "paid": int((BORN + timedelta(minutes=number) - _EPOCH).total_seconds()),
        "seen": _milliseconds(_moment(number + 100)),
    }


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@pytest.fixture
def counted(shop: ReconciledShop) -> Counted:
    """The shop, described with units."""
    return Counted(shop)


def test_what_is_counted_is_compared_filtered_repaired_and_produced(counted: Counted) -> None:
    """An older version in the store is mismatched, a newer one is left alone; what the filter leaves out is nowhere."""
    shop = counted.shop
    for number in range(12):
        counted.insert("outbox", number)
    counted.send(*range(11))
    for number in (5, 7, 8):
        counted.insert("warehouse", number)
    counted.insert("warehouse", 9, due="2020-01-01")
    counted.insert("warehouse", 10, due="2020-01-01", seen=_moment(109).isoformat())

    context = shop.judge_and_ask_the_gate()
    assert {key: verdict for key, (verdict, _) in shop.found(context, LEDGER_HOP).items()} == {"O11": "missing"}
    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    assert verdicts == {"O6": "missing", "O9": "mismatched", "O10": "mismatched"}

    plan = plan_window(context).plan
    assert plan is not None
    assert plan.counts == {"produce": 1, "upsert": 3}
    compensate_window(context, lambda _: None)
    counted.insert("warehouse", 11)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(context) == dict.fromkeys(["O6", "O9", "O10", "O11"], "repaired")
    assert shop.certify(context).state is WindowState.CERTIFIED

    assert counted.row(6) == (
        "O6",
        _moment(6),
        date(1970, 1, 3),
        (BORN + timedelta(minutes=6)).replace(tzinfo=None),
        _moment(106),
    )
    assert counted.row(10)[2:5:2] == (date(1970, 1, 7), _moment(110))
    assert json.loads(shop.read()[-1].value or b"") == _record(11)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_other_units_are_another_reading(counted: Counted) -> None:
    """Seconds where milliseconds were written: no row has these values, and what is found says so."""
    shop = counted.shop
    for number in (5, 6):
        counted.insert("outbox", number)
        counted.insert("warehouse", number)
    counted.send(5, 6)
    text = shop.file.read_text().replace(
        'at: {field: "$.at", as: timestamp(ms)}', 'at: {field: "$.at", as: timestamp(s)}'
    )
    shop.file.write_text(text)

    context = shop.judged()
    assert compared_everywhere(shop.pipeline)["at"] == "timestamp(3) at orders: $.at as timestamp(s)"
    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    assert verdicts == dict.fromkeys(["O5", "O6"], "mismatched")


def test_a_filter_by_the_number_itself_is_refused(counted: Counted) -> None:
    """Where the tables have a number as the records do, and the file says that it is a moment."""
    text = counted.shop.file.read_text()
    counted.shop.file.write_text(text.replace("at >= '2025-03-01 00:00:05Z'", "paid > 1740787205"))
    counted.shop.sql("alter table outbox alter paid type bigint using 0")
    counted.shop.sql("alter table warehouse alter paid type bigint using 0")
    pipeline = counted.shop.pipeline
    problems = problems_of_tables(pipeline, connections_of(pipeline))
    message = "orders counts paid in timestamp(s), and 1740787205 would be compared with it as int"
    assert message in [problem.found for problem in problems]
