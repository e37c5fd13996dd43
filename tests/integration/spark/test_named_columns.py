"""Test a pipeline whose three points have three names for each column: nested, quoted, with spaces and capitals, and
one that is an attack."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.config.connections import from_environment
from makewhole.journal import certificates
from makewhole.journal.database import connect
from makewhole.journey.trace import trace as trace_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext, connections_of
from makewhole.window.opening.readable import problems_of_tables
from tests.integration.spark.test_undone import undone
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOSTILE = 'x"; drop table shop."Out.Box"; --'
FILE = """
version: 2
pipeline: shop
start: earliest
settle: 0s
compare: {{amount: "decimal(8,2)", place: string}}
points:
  outbox:
    kind: ledger
    connection: db
    table: shop."Out.Box"
    key: "Nr."
    time: Recorded At
    columns: {{amount: "Total Amount", place: {hostile}, cancelled: Is Off}}
    leave_fields: [amount]
  orders:
    kind: topic
    connection: log
    topic: {topic}
    key: "$.order.id"
    columns: {{amount: "$.order.total.net", place: "$.order.where", cancelled: "$.off"}}
  warehouse:
    kind: store
    connection: db
    table: '"My Dw"."Orders %s"'
    key: "Id"
    time: Loaded At
    columns: {{amount: total_amount, place: "Place %(x)s {{0}}"}}
hops:
  - {{from: outbox, to: orders, where: cancelled = false, compensation: {{missing: produce}}}}
  - from: orders
    to: warehouse
    where: cancelled = false
    compensation: {{missing: upsert, mismatched: upsert, duplicate: quarantine}}
compensation: {{limits: {{share: 1.0}}}}
"""
LEDGER = 'shop."Out.Box"'
STORE = '"My Dw"."Orders %s"'
_TABLES = (
    'create schema shop; create schema "My Dw"; '
    'create table shop."Out.Box" ("Nr." text, "Total Amount" numeric(8,2), "{hostile}" text, "Recorded At" timestamptz,'
    ' "Is Off" boolean default false); '
    'create table {store} ("Id" text, total_amount numeric(8,2), "Place %(x)s {{0}}" text, "Loaded At" timestamptz,'
    " amount text default 'another''s', place int default 7){partitioned}"
)


class Named:
    """The shop with tables and records of other names."""

    def __init__(self, shop: ReconciledShop) -> None:
        self.shop = shop

    def describe(self, old: str = "", new: str = "") -> None:
        text = FILE.format(topic=self.shop.topic, hostile=json.dumps(HOSTILE))
        assert old in text
        self.shop.file.write_text(text.replace(old, new))

    def make_tables(self, partitioned: str = "") -> None:
        self.sql(_TABLES.format(hostile=HOSTILE.replace('"', '""'), store=STORE, partitioned=partitioned))

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        return self.shop.sql(statement)

    def record(self, made: Iterable[Order]) -> None:
        hostile = HOSTILE.replace('"', '""')
        names = f'"Nr.", "Total Amount", "{hostile}", "Recorded At"'
        for order in made:
            self.sql(f"insert into {LEDGER} ({names}) values ({_values(order)})")

    def send(self, made: Iterable[Order]) -> None:
        client = producer(self.shop.bootstrap)
        for order in made:
            nested = {"id": order["id"], "total": {"net": order["amount"]}, "where": order["region"]}
            value = json.dumps({"order": nested, "off": False, "Recorded At": order["at"], "amount": "no amount"})
            moment = milliseconds(order["at"])
            client.produce(self.shop.topic, partition=0, key=order["id"], value=value, timestamp=moment)
        assert client.flush(30) == 0

    def load(self, made: Iterable[Order]) -> None:
        for order in made:
            names = '"Id", total_amount, "Place %(x)s {0}", "Loaded At"'
            self.sql(f"insert into {STORE} ({names}) values ({_values(order)})")

    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Return the store's rows as it has them, by key; no key has two."""
        rows = [json.loads(text) for (text,) in self.sql(f'select to_json(t)::text from {STORE} t order by "Id"')]
        assert len({row["Id"] for row in rows}) == len(rows)
        return {row["Id"]: row for row in rows}

    def repair(self, context: WindowContext, loads: Iterable[Order] = ()) -> ClosedWindow:
        compensate_window(context, lambda _: None)
        self.load(loads)
        verify_window(context, lambda *_: None, patience_seconds=0)
        return self.shop.certify(context)


def _values(order: Order) -> str:
    return f"'{order['id']}', {order['amount']}, '{order['region']}', '{order['at']}'"


@pytest.fixture
def named(shop: ReconciledShop) -> Named:
    """The shop, described with other names."""
    made = Named(shop)
    made.describe()
    return made


PARTITIONED = (
    '; create table "My Dw"."low %" partition of "My Dw"."Orders %s" for values in (\'EU\');'
    ' create table "My Dw"."High.Ones" partition of "My Dw"."Orders %s" default'
)


@pytest.mark.parametrize("partitioned", ["", ' partition by list ("Place %(x)s {0}")' + PARTITIONED])
def test_what_differs_is_found_and_repaired_under_the_names_of_each_point(named: Named, partitioned: str) -> None:
    shop = named.shop
    named.make_tables(partitioned)
    made = orders(range(10))
    named.record(made)
    named.send(made[:9])
    named.load([order for order in made[:9] if order["id"] != "O4"])
    named.sql(f"update {STORE} set total_amount = 99 where \"Id\" = 'O2'")
    named.load(made[7:8])
    before = {row[0]: row[1] for row in named.sql(f'select "Id", t::text from {STORE} t')}

    context = shop.judge_and_ask_the_gate()
    assert {key: verdict for key, (verdict, _) in shop.found(context, LEDGER_HOP).items()} == {"O9": "missing"}
    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    assert verdicts == {"O2": "mismatched", "O4": "missing", "O7": "duplicate"}
    assert shop.evidence(context, STORE_HOP, "O2")["values"] == {"amount": "2.50", "place": "EU"}
    with connect(shop.journal) as journal:
        journey = trace_key(journal, shop.pipeline, Storage.from_environment(), from_environment, "O2")
    assert [dict(stop.copies[-1].values) for stop in journey.stops] == [
        {"amount": "2.50", "place": "EU"},
        {"amount": "2.50", "place": "EU"},
        {"amount": "99.00", "place": "EU"},
    ]

    plan = plan_window(context).plan
    assert plan is not None
    assert shop.outcome_of(context, LEDGER_HOP, "O9") == ("open", None)
    assert plan.counts == {"produce": 1, "upsert": 2, "quarantine": 1}
    closed = named.repair(context, made[9:])

    assert shop.outcomes(context) == dict.fromkeys(["O2", "O4", "O7", "O9"], "repaired")
    assert closed.state is WindowState.CERTIFIED
    rows = named.rows()
    expected = {"Id": "O4", "total_amount": 4.5, "Place %(x)s {0}": "EU", "amount": "another's", "place": 7}
    assert {name: value for name, value in rows["O4"].items() if name != "Loaded At"} == expected
    assert rows["O2"]["total_amount"] == 2.5
    after = {row[0]: row[1] for row in named.sql(f'select "Id", t::text from {STORE} t')}
    assert {key for key in before if after[key] != before[key]} == {"O2"}
    assert after["O2"] == before["O2"].replace(",99.00,", ",2.50,")
    sent = json.loads(shop.read()[-1].value or b"")
    assert {name: sent[name] for name in ("order", "off")} == {
        "order": {"id": "O9", "total": {"net": 9.5}, "where": "US"},
        "off": False,
    }
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    with connect(shop.journal) as journal:
        assert len(certificates.chain(journal, "shop")) == 2
    assert named.sql(f"select count(*) from {LEDGER}") == [(10,)]


def test_a_plan_is_bound_to_the_columns_that_it_was_made_for(named: Named) -> None:
    shop = named.shop
    named.make_tables()
    made = orders(range(4))
    named.record(made)
    named.send(made)
    named.load(made[1:])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    before = named.sql(f"select t::text from {STORE} t order by 1")
    named.describe("total_amount", "amount")

    with pytest.raises(RefusedError) as caught:
        compensate_window(replace(context, pipeline=shop.pipeline), lambda _: None)

    place, other = 'db:"My Dw"."Orders %s"', "place: Place %(x)s {0}"
    assert str(caught.value) == (
        f"warehouse is {place} ({other}) now and was {place} (amount: total_amount, {other}) when the plan was frozen; "
        "open a new revision of the window"
    )
    assert named.sql(f"select t::text from {STORE} t order by 1") == before


def test_what_is_wrong_about_a_column_is_said_by_both_of_its_names(named: Named) -> None:
    named.make_tables()
    named.describe("total_amount", "Total")
    pipeline = named.shop.pipeline
    (absent,) = problems_of_tables(pipeline, connections_of(pipeline))
    assert (absent.path, absent.found, absent.remedy) == (
        "points.warehouse.columns.amount",
        '"My Dw"."Orders %s" has no column Total, which is amount',
        "It has: Id, Loaded At, Place %(x)s {0}, amount, place, total_amount",
    )

    named.sql(f"alter table {STORE} alter total_amount type numeric(8,1), alter amount drop default")
    named.describe()
    pipeline = named.shop.pipeline
    narrow, silent = problems_of_tables(pipeline, connections_of(pipeline))
    assert narrow.found == (
        '"My Dw"."Orders %s".total_amount (point warehouse) is of type numeric(8,1), which does not hold every '
        "decimal(8,2)"
    )
    assert silent.remedy == (
        "Name them first, under `columns` of point warehouse: `own_amount: amount`. Then write `write: {own_amount: "
        "string}` on this hop for those that the record has under the same name, and `leave: [own_amount]` for those "
        "that stay empty"
    )


def test_what_was_written_under_other_names_is_taken_back(named: Named) -> None:
    shop = named.shop
    named.make_tables()
    made = orders(range(6))
    named.record(made)
    named.send(made)
    named.load(made[1:])
    named.load(made[4:5])
    named.sql(f"update {STORE} set total_amount = 99, amount = 'mine' where \"Id\" = 'O2'")
    before = named.sql(f"select t::text from {STORE} t order by 1")
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    assert named.repair(context).state is WindowState.CERTIFIED

    undone(shop, context, plan)

    assert named.sql(f"select t::text from {STORE} t order by 1") == before
    assert shop.outcomes(context) == dict.fromkeys(["O0", "O2", "O4"], "open")
