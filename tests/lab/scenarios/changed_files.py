"""Change the pipeline's file between two days: a source is taken out of it (row 76), and versions come from another
field (row 77)."""

from datetime import timedelta

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, COLUMNS, DAY, orders
from tests.world.pipeline_file import fed_by_ledgers
from tests.world.shop import LEDGER_HOP, STORE_HOP

_FIRST, _SECOND = "outbox→warehouse", "archive→warehouse"
_CERTIFIED, _NOT_KNOWN = WindowState.CERTIFIED.value, WindowState.NOT_KNOWN.value


@scenario(
    row=76,
    name="A source is taken out of the file",
    happens=(
        "Two systems fill one table. One of them moves to a pipeline of its own, and its hop is taken out of the file. "
        "Then the table is loaded again, with the times of today: whoever looks for the rows of the other system in "
        "the source that is left finds none of them."
    ),
    made=(
        "A day of orders in two ledgers that feed one table, certified. The file names one of them from then on, and "
        "all rows of the table get the time of the next day. `unexpected: quarantine`."
    ),
    why=(
        "The windows before say which hops led to the table, and the key index still has the keys of their sources. "
        "What one of these brought is undecidable by the change of the file, and stays where it is. The source that is "
        "left has all its rows."
    ),
    covered_by=("tests/integration/spark/test_changed_hops.py",),
)
def source_taken_out(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    shop.sql("create table archive (like outbox)")
    _fed_by(shop, "outbox", "archive")
    made, others = (orders(range(first, first + lab.random.randint(20, 40))) for first in (0, 1000))
    for table, rows in (("outbox", made), ("archive", others), ("warehouse", [*made, *others])):
        shop.write(table, rows)
    first = Window(
        label="the first day",
        judged=shop.close(shop.open(0)),
        expected=Judged(state=_CERTIFIED, accounting={}, matched={_FIRST: len(made), _SECOND: len(others)}),
    )
    _fed_by(shop, "outbox")
    shop.sql("update warehouse set at = at + interval '1 day'")
    today = orders(range(500, 500 + lab.random.randint(10, 30)), 1)
    shop.write("outbox", today)
    shop.write("warehouse", today)
    answer = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    before = shop.sql("select * from warehouse order by id")
    context = shop.judge_and_repair(1)
    assert shop.sql("select * from warehouse order by id") == before
    second = Window(
        label="the second day",
        judged=shop.verified(context),
        expected=Judged(
            state=_NOT_KNOWN,
            reason=f"not proven: {_FIRST}: {len(others)} keys undecidable, 0 allowed",
            accounting={},
            matched={_FIRST: len(today)},
            found={_FIRST: {order["id"]: ("undecidable", "hops_changed") for order in others}},
            incidents=(("slice_shrunk", None, None, None),),
        ),
    )
    right = len(made) + len(today)
    return Outcome(
        truth=f"Here {len(others)} rows of the table came from the system that the file names no more.",
        naive=(Naive(answer=answer, expected=naive.compared(right, right + len(others))),),
        windows=(first, second),
    )


@scenario(
    row=77,
    name="Versions come from another field",
    happens=(
        "A topic's records were numbered by a counter of their database. From a migration on a new field counts, from "
        "1, and the file says so. By their numbers all that comes is older than what is there."
    ),
    made=(
        "A day of orders with versions from 100 on, certified. The file names another field and another column; on the "
        "next day some orders come again with the version 1, and a loader writes them, but for three. "
        "`semantics: upsert`."
    ),
    why=(
        "The key index notes from which field versions are. Those of another one are in no order with those of now, "
        "and older: what is numbered by the new field came after it. The three rows that were not written are mended."
    ),
    covered_by=("tests/integration/spark/test_changed_readings.py",),
)
def another_field_of_versions(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(is_upsert=True, has_version=True, hop={"compensation": "{mismatched: upsert}"})
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column seq integer")
    text = shop.file.read_text()
    shop.file.write_text(text.replace("write: {", "write: {seq: int, "))
    made = [order | {"version": 100 + order["number"], "seq": 0} for order in orders(range(lab.random.randint(40, 80)))]
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    first = Window(
        label="the first day",
        judged=shop.close(shop.open(0)),
        expected=Judged(
            state=_CERTIFIED,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made)},
        ),
    )
    text = text.replace("$.version", "$.seq").replace("version: version", "version: seq")
    shop.file.write_text(text.replace("write: {", "write: {version: int, "))
    at = (BORN + DAY + timedelta(hours=2)).isoformat()
    chosen = lab.random.sample(made, 12)
    newer = [order | {"version": 1, "seq": 1, "amount": "77.25", "at": at} for order in chosen]
    for order in newer:
        shop.sql("update outbox set version = 1, seq = 1, amount = 77.25, at = %s where id = %s", at, order["id"])
    shop.send(newer)
    shop.upsert("warehouse", newer[3:])
    shop.sql("update warehouse set seq = 1 where id = any(%s)", [order["id"] for order in newer[3:]])
    answer = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    judged = shop.judge_and_repair(1)
    assert shop.sql("select count(*) from warehouse where amount = 77.25 and seq = 1") == [(12,)]
    second = Window(
        label="the second day",
        judged=shop.verified(judged),
        expected=Judged(
            state=_CERTIFIED,
            accounting={"span": len(newer), "data": len(newer)},
            matched={LEDGER_HOP: len(newer), STORE_HOP: len(newer) - 3},
            found={STORE_HOP: {order["id"]: ("mismatched", "stale_version") for order in newer[:3]}},
        ),
    )
    return Outcome(
        truth="Here 12 orders have a newer version with a lower number, and the store lacks 3 of these.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second),
    )


def _fed_by(shop: LabShop, *names: str) -> None:
    compensation = "{limits: {share: 1.0}, unexpected: quarantine}"
    shop.file.write_text(fed_by_ledgers(names, hop={}, columns=COLUMNS, late="1h", compensation=compensation))
