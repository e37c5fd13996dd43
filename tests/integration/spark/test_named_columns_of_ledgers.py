"""Test rows that go from a ledger straight into a table, and versions: each end has its own names for every column."""

from collections.abc import Iterable

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_survivors import repair
from tests.world.orders import Order, orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOP = "outbox→warehouse"
FILE = """
version: 2
pipeline: shop
start: earliest
settle: 0s
compare: {amount: "decimal(8,2)", paid: timestamp}
points:
  outbox:
    kind: ledger
    connection: db
    table: '"Out % Box"'
    key: Nr
    time: Made At
    columns: {amount: Total Amount, paid: "Paid {at}", region: Area, count: "V N"SOURCE}
    FROM
  warehouse:
    kind: store
    connection: db
    table: dw
    key: id
    time: Loaded
    columns: {amount: total, paid: "Paid %s", region: "Re Gion", count: NumberTARGET}
    INTO
hops:
  - {from: outbox, to: warehouse, where: region = 'EU', write: {region: string, count: int}, SEMANTICS}
compensation: {limits: {share: 1.0}, missing: upsert, mismatched: upsert}
"""


def make(shop: ReconciledShop, semantics: str, payload: str) -> None:
    """Make the tables, and a file for them; events have no version, and leave its column empty."""
    is_upsert = semantics == "upsert"
    source = ["payload: Body"] if payload else []
    source += ["version: Ver No"] if is_upsert else []
    text = FILE.replace("FROM", "\n    ".join(source)).replace("INTO", "version: ver %" if is_upsert else "")
    text = text.replace("compare: {", "compare: {v: bigint, " if is_upsert else "compare: {")
    text = text.replace("SOURCE", ", v: Ver No" if is_upsert else "").replace("TARGET", ', v: "ver %"')
    text = text.replace("SEMANTICS", "semantics: upsert" if is_upsert else "leave: [v]")
    shop.file.write_text(text)
    shop.sql(
        'create table "Out % Box" ("Nr" text, "Total Amount" numeric(8,2), "Paid {at}" timestamptz, "Area" text,'
        ' "V N" int, "Made At" timestamptz, "Ver No" bigint, "Body" jsonb)'
    )
    shop.sql(
        'create table dw (id text, total numeric(8,2), "Paid %s" timestamptz, "Re Gion" text, "Number" int,'
        ' "Loaded" timestamptz, "ver %" bigint, amount text default \'own\')'
    )


def rows(shop: ReconciledShop, table: str, names: str, made: Iterable[Order], version: int) -> None:
    for order in made:
        at = order["at"]
        texts = f"'{order['id']}', {order['amount']}, '{at}', '{order['region']}', {order['number']}, '{at}', {version}"
        shop.sql(f"insert into {table} ({names}) values ({texts})")


LEDGER = ('"Out % Box"', '"Nr", "Total Amount", "Paid {at}", "Area", "V N", "Made At", "Ver No"')
STORE = ("dw", 'id, total, "Paid %s", "Re Gion", "Number", "Loaded", "ver %"')


@pytest.mark.parametrize("payload", ["", "payload"])
@pytest.mark.parametrize("semantics", ["event", "upsert"])
def test_a_row_is_taken_from_the_columns_of_one_table_into_those_of_the_other(
    shop: ReconciledShop, semantics: str, payload: str
) -> None:
    make(shop, semantics, payload)
    made = orders(range(8))
    rows(shop, *LEDGER, made, 2)
    eu = [order for order in made if order["region"] == "EU"]
    rows(shop, *STORE, eu[:-1], 2)
    shop.sql("update dw set total = 99, amount = 'kept' where id = 'O2'")
    if semantics == "upsert":
        shop.sql("update dw set \"ver %\" = 1, amount = 'old' where id = 'O0'")
    before: dict[str, str] = dict(shop.sql("select id, dw::text from dw"))

    context = shop.judge_and_ask_the_gate()
    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, HOP).items()}
    assert verdicts == {"O2": "mismatched", "O6": "missing", **({"O0": "mismatched"} if semantics == "upsert" else {})}
    closed = repair(shop, context)

    assert {key: shop.outcome_of(context, HOP, key) for key in verdicts} == dict.fromkeys(verdicts, ("repaired", None))
    assert closed.state is WindowState.CERTIFIED
    after: dict[str, str] = dict(shop.sql("select id, dw::text from dw"))
    assert after["O2"] == before["O2"].replace(",99.00,", ",2.50,")
    assert {key for key in before if before[key] != after[key]} == verdicts.keys() - {"O6"}
    version = 2 if semantics == "upsert" else None
    assert shop.sql(
        'select total::text, "Paid %s"::text, "Re Gion", "Number", "ver %", amount from dw where id = \'O6\''
    ) == [("6.50", "2025-03-01 00:06:00+00", "EU", 6, version, "own")]
