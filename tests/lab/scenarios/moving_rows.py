"""Change tables while they are looked at: a late commit behind a time column, rows that move during a read, rows that
are newer than the window (rows 23 to 25)."""

import json
import threading
from contextlib import closing
from dataclasses import replace

import psycopg2

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import execute

_CERTIFIED = WindowState.CERTIFIED.value
_INSERT = "insert into {} select * from json_populate_recordset(null::{}, %s::json)"


@scenario(
    row=23,
    name="A late commit behind a time column",
    happens=(
        "A transaction inserts orders into the outbox and stays open over midnight. Whoever asks for rows that are "
        "newer than the last ones that it saw never sees them: they are older when they are committed."
    ),
    made=(
        "Some orders of a day are inserted in a transaction that is committed when the day was judged; they go through "
        "topic and store on the next day, with the times of the first."
    ),
    why=(
        "Rows that were not certainly visible when a table was read last are read again, as far back as `late` says, "
        "by their transaction ids and not by their times."
    ),
    covered_by=("tests/integration/spark/test_slices_of_tables.py",),
)
def late_commit(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(40, 80)))
    late = sorted(lab.random.sample(made[:-1], lab.random.randint(3, 12)), key=lambda order: order["number"])
    in_time, today = [order for order in made if order not in late], orders(range(500, 520), 1)
    with closing(psycopg2.connect(shop.dsn)) as session:
        execute(session, _INSERT.format("outbox", "outbox"), (json.dumps(late),))
        shop.trade(in_time)
        copied = shop.sql("select count(*), max(at) from outbox")[0]
        first = Window(label="the first day", judged=shop.day(), expected=_all(in_time))
        session.commit()
    shop.send(late)
    shop.write("warehouse", late)
    shop.trade(today)
    ((newer,),) = shop.sql("select count(*) from outbox where at > %s", copied[1])
    answer = naive.NaiveAnswer(
        check="a copy of the ledger that is continued behind the last time in it, against rows in the store",
        text=f"{copied[0]} and {newer} rows, {shop.count('warehouse')} rows",
        conclusion=naive.compared(copied[0] + newer, shop.count("warehouse")),
    )
    # What came to the ledger after that transaction began is read again with it.
    again = {LEDGER_HOP: len(made) + len(today), STORE_HOP: len(late) + len(today)}
    second = Window(label="the second day", judged=shop.day(1), expected=replace(_all([*late, *today]), matched=again))
    return Outcome(
        truth=f"Here {len(late)} of {len(made)} orders are committed late, and nothing is wrong.",
        naive=(Naive(answer=answer, expected=f"{len(late)} repeated"),),
        windows=(first, second),
    )


@scenario(
    row=24,
    name="Rows move while a table is read in parts",
    happens=(
        "A table is read in parts by several connections, each of which sees another moment. A row that is updated "
        "between two of them, and moves from one part into another, is read twice, or never."
    ),
    made=(
        "A check by hand reads the store in two parts, and rows are moved from the second into the first between them. "
        "All rows are then updated over and over while makewhole reads the tables in parts."
    ),
    why="All readers of a table share one exported snapshot of the database, whatever is written meanwhile.",
    covered_by=("tests/integration/postgres/test_export.py",),
)
def rows_that_move(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(2 * lab.random.randint(1_000, 2_000)))
    shop.trade(made)
    answer, moved = _read_in_parts(lab, shop, made)
    context, ended = shop.open(), threading.Event()
    writer = threading.Thread(target=_rewrite, args=(shop, ended))
    writer.start()
    try:
        shop.snapshot(context, parallelism=4)
    finally:
        ended.set()
        writer.join()
    shop.reconcile(context)
    shop.validate(context)
    return Outcome(
        truth=f"Here {moved} of {len(made)} rows moved between the two reads, and nothing is wrong.",
        naive=(Naive(answer=answer, expected=f"{moved} lost"),),
        windows=(Window(judged=shop.certify_and_collect(context), expected=_all(made)),),
    )


@scenario(
    row=25,
    name="A row that is newer than the window",
    happens=(
        "A key is updated while a window is judged: the store has a version that comes after the end of the window, "
        "and differs from what the window's source says."
    ),
    made="The offsets of the first day are frozen; then second versions of some orders go all the way to the store.",
    why=(
        "A row that holds a later version is superseded, not wrong: what came after the window is looked for behind "
        "its end before a row is called different."
    ),
    covered_by=("tests/integration/spark/test_after_newer_windows.py",),
)
def newer_than_the_window(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(is_upsert=True, has_version=True)
    made = [order | {"version": 1} for order in orders(range(lab.random.randint(40, 80)))]
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    copy = {order["id"]: (order["version"], order["amount"]) for order in made}
    context = shop.open()
    at = (BORN + 1.5 * DAY).isoformat()
    newer = [order | {"version": 2, "amount": "0.25", "at": at} for order in lab.random.sample(made, 8)]
    shop.sql("delete from outbox where id = any(%s)", [order["id"] for order in newer])
    shop.write("outbox", newer)
    shop.send(newer)
    shop.load()
    differing = sum(copy[key] != row for key, row in shop.rows(list(copy)).items())
    answer = naive.NaiveAnswer(
        check="values of a copy of the day's records against those of the store",
        text=f"{differing} of {len(copy)} rows differ",
        conclusion=f"{differing} wrong",
    )
    first = Window(
        label="the first day",
        judged=shop.close(context),
        expected=Judged(
            state=_CERTIFIED,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made) - len(newer), STORE_HOP: len(made)},
        ),
    )
    second = Window(label="the second day", judged=shop.day(1), expected=_all(newer))
    return Outcome(
        truth=f"Here {len(newer)} of {len(made)} orders were updated after the day was frozen, and nothing is wrong.",
        naive=(Naive(answer=answer, expected=f"{len(newer)} wrong"),),
        windows=(first, second),
    )


def _all(made: list[Order]) -> Judged:
    return Judged(
        state=_CERTIFIED,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made)},
    )


def _read_in_parts(lab: Lab, shop: LabShop, made: list[Order]) -> tuple[naive.NaiveAnswer, int]:
    """Read the store by two connections, one after the other, and move rows from the second part into the first
    between them; then put them back."""
    half, moved = len(made) // 2, lab.random.randint(5, 40)
    with closing(psycopg2.connect(shop.dsn)) as first_reader, closing(psycopg2.connect(shop.dsn)) as two:
        ((first,),) = execute(first_reader, "select count(*) from warehouse where number < %s", (half,))
        shop.sql("update warehouse set number = -number where number >= %s", len(made) - moved)
        ((second,),) = execute(two, "select count(*) from warehouse where number >= %s", (half,))
    shop.sql("update warehouse set number = -number where number < 0")
    answer = naive.NaiveAnswer(
        check="rows of the store, counted in two parts by two connections, against orders",
        text=f"{first} and {second} rows, {len(made)} orders",
        conclusion=naive.compared(len(made), first + second),
    )
    return answer, moved


def _rewrite(shop: LabShop, ended: threading.Event) -> None:
    """Update every row, one half of the table after the other, until it is enough."""
    number = 0
    while not ended.is_set():
        for table in ("outbox", "warehouse"):
            shop.sql(f"update {table} set region = region where number %% 2 = %s", number % 2)
        number += 1
