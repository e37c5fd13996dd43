"""Repair a table while others write into it (row 47)."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

import psycopg2
from psycopg2 import errors

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from makewhole.sql import PgCursor
from makewhole.window.context import WindowContext
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_PATIENCE = "300ms"
_ROW_SECONDS = 0.1
_SLOWLY = f"""\
create function slowly() returns trigger language plpgsql as
$$ begin perform pg_sleep({_ROW_SECONDS}); return new; end $$;
create trigger slowly before insert on warehouse for each row execute function slowly()"""


@scenario(
    row=47,
    name="Other writers during an upsert",
    happens=(
        "Rows are written into a store while the application goes on writing there. A repair that locks the table to "
        "be sure that no key comes twice makes every writer wait, and waits for every open transaction itself."
    ),
    made=(
        f"The store has a unique index on the key, and takes {_ROW_SECONDS} s for a row. While lost rows are written, "
        f"another session updates other rows, with a `lock_timeout` of {_PATIENCE}; one more has a change that it does "
        "not commit until the repair has ended."
    ),
    why=(
        "With a unique index on the key the index itself keeps a second row out, and no lock of the table is taken. "
        "Without one the plan and the dry run say that writers wait, and during how many chunks."
    ),
    covered_by=("tests/integration/postgres/test_other_writers.py",),
)
def other_writers(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop={"compensation": "{missing: upsert}"})
    shop.sql("alter table warehouse add primary key (id)")
    made = orders(range(lab.random.randint(30, 60)))
    shop.trade(made)
    lost = lab.random.sample(made, lab.random.randint(10, 15))
    others = [order["id"] for order in made if order not in lost]
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    answer = _behind_a_lock(shop, lost, others)
    shop.sql(_SLOWLY)
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    waited = _repair_among_writers(shop, context, others)
    window = Window(
        judged=replace(shop.verified(context), messages=(f"{waited} updates of others waited",)),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(others)},
            found={STORE_HOP: {order["id"]: ("missing", "lost_after_topic") for order in lost}},
            messages=("0 updates of others waited",),
        ),
    )
    truth = f"Here {len(lost)} of {len(made)} rows are written again, and others go on with the rest."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _repair_among_writers(shop: LabShop, context: WindowContext, others: Sequence[str]) -> int:
    """Repair the store beside a session that updates and one that does not commit; return how many updates waited."""
    is_over = threading.Event()
    with ThreadPoolExecutor() as pool, _uncommitted(shop, others[0]):
        updating = pool.submit(_update_others, shop, others[1:], is_over)
        try:
            compensate_window(context, lambda _: None)
        finally:
            is_over.set()
        done, waited = updating.result()
    assert done > 0
    return waited


def _update_others(shop: LabShop, keys: Sequence[str], is_over: threading.Event) -> tuple[int, int]:
    """Update rows until it is over; return how many updates were done, and how many would have had to wait."""
    done = waited = 0
    with _session(shop) as cursor:
        cursor.connection.autocommit = True
        while not is_over.wait(0.02):
            try:
                _change(cursor, keys[(done + waited) % len(keys)])
                done += 1
            except errors.LockNotAvailable:
                waited += 1
    return done, waited


@contextmanager
def _uncommitted(shop: LabShop, key: str) -> Iterator[None]:
    """Change a row, and commit only at the end."""
    with _session(shop) as cursor:
        _change(cursor, key)
        yield
        cursor.connection.commit()


@contextmanager
def _session(shop: LabShop) -> Iterator[PgCursor]:
    """A session that waits for no lock longer than it has patience."""
    options = f"-c lock_timeout={_PATIENCE}"
    with closing(psycopg2.connect(shop.dsn, options=options)) as session, session.cursor() as cursor:
        yield cursor


def _change(cursor: PgCursor, key: str) -> None:
    cursor.execute("update warehouse set region = 'XX' where id = %s", (key,))


def _behind_a_lock(shop: LabShop, lost: Sequence[Order], others: Sequence[str]) -> Naive:
    """Return what a script does to writers that locks the table until every row is written; it is rolled back."""
    waited = 0
    with _session(shop) as script:
        script.execute("lock table warehouse in share row exclusive mode")
        for key in others[:3]:
            with _session(shop) as other:
                try:
                    _change(other, key)
                except errors.LockNotAvailable:
                    waited += 1
    return Naive(
        answer=naive.NaiveAnswer(
            check="a script that locks the table while it writes what is missing",
            text=f"{len(lost)} rows to write, {waited} of 3 updates of others waited",
            conclusion=f"{waited} of 3 writers wait",
        ),
        expected="3 of 3 writers wait",
    )
