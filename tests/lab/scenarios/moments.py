"""Write moments with an offset into a column that has no zone (row 51)."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_WRITE = '{number: int, region: string, amount: "decimal(8,2)", at: timestamp, seen_at: timestamp}'
_ZONES = [timezone(timedelta(hours=hours)) for hours in (2, -5, 5.5)]


@scenario(
    row=51,
    name="A moment with an offset, and a column without a zone",
    happens=(
        "A record says `12:00+02:00`, and the store's column is a `timestamp` without a zone. PostgreSQL drops the "
        "offset of such a text without a word: 12:00 is written where 10:00 is right."
    ),
    made=(
        "Orders leave, and are seen, at noon of several zones; the database's own zone is New York. The loader writes "
        "the texts of the records, and some rows are lost. `compare: {left_at: timestamp}`; the other time is not "
        "compared, and new rows get it (`write`). `missing: upsert`, `mismatched: upsert`."
    ),
    why=(
        "What is written is the moment that the record means, in the column's own type, whatever the zone of the "
        "session. A row that would not compare equal once it stands there is refused before it is written. Of a row "
        "that is there only what is compared is mended."
    ),
    covered_by=(
        "tests/integration/compensation/execution/test_written_columns.py",
        "tests/integration/postgres/test_types.py",
    ),
)
def offset_without_zone(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(
        hop={"compensation": "{missing: upsert, mismatched: upsert}", "write": _WRITE},
        compare="{left_at: timestamp}",
    )
    _speak_of_new_york(shop)
    made, expected = _at_noon(lab, orders(range(lab.random.randint(20, 60))))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    lost = lab.random.sample(made, lab.random.randint(3, 10))
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    answer = _written_by_hand(shop, lost, expected)
    seen: dict[str, str] = dict(shop.sql("select id, seen_at::text from warehouse"))
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    rows = {key: times for key, *times in shop.sql("select id, left_at::text, seen_at::text from warehouse")}
    assert rows == {key: [text, seen.get(key, text)] for key, text in expected.items()}, rows
    verdicts = {order["id"]: ("mismatched", "value_differs") for order in made}
    verdicts |= {order["id"]: ("missing", "lost_after_topic") for order in lost}
    window = Window(
        judged=shop.verified_with_outcomes(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: 0},
            found={STORE_HOP: verdicts},
            messages=(f"{STORE_HOP}: {len(made)} repaired",),
        ),
    )
    truth = (
        f"Here the loader wrote {len(made) - len(lost)} of {len(made)} orders at a wrong time, and lost {len(lost)}."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _speak_of_new_york(shop: LabShop) -> None:
    """Give the tables two more times, the store's without a zone; sessions have a zone that is not UTC."""
    for table, zone in (("outbox", "with"), ("warehouse", "without")):
        kind = f"timestamp {zone} time zone"
        shop.sql(f"alter table {table} add left_at {kind}, add seen_at {kind}")
    shop.sql(
        "do $$ begin execute format('alter database %I set timezone to ''America/New_York''', current_database()); "
        "end $$"
    )


def _at_noon(lab: Lab, made: Sequence[Order]) -> tuple[list[Order], Mapping[str, str]]:
    """Make each order leave and be seen at noon of some zone; return what a column without a zone says then, by key,
    too."""
    noons = {
        order["id"]: datetime(BORN.year, BORN.month, BORN.day, 12, tzinfo=lab.random.choice(_ZONES)) for order in made
    }
    leaving = [order | dict.fromkeys(("left_at", "seen_at"), noons[order["id"]].isoformat()) for order in made]
    return leaving, {key: f"{noon.astimezone(UTC):%Y-%m-%d %H:%M:%S}" for key, noon in noons.items()}


def _written_by_hand(shop: LabShop, lost: Sequence[Order], expected: Mapping[str, str]) -> Naive:
    """Return what an insert of the records' fields makes of the rows that are lost, on a copy of the table."""
    shop.sql("create table copy (like warehouse)")
    shop.sql("insert into copy select * from json_populate_recordset(null::copy, %s::json)", json.dumps(list(lost)))
    wrong = sum(text != expected[key] for key, text in shop.sql("select id, left_at::text from copy"))
    return Naive(
        answer=naive.NaiveAnswer(
            check="insert … select from json_populate_recordset of the records that are lost",
            text=f"{len(lost)} rows written",
            conclusion=f"{wrong} at a wrong time",
        ),
        expected=f"{len(lost)} at a wrong time",
    )
