"""Take PostgreSQL away for a while, in the middle of a window (row 46)."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from urllib.parse import urlsplit

import psycopg2
import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.errors import TransientError
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_postgres
from makewhole.stack.ports import free_ports
from makewhole.window.context import window_context
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.servers.tcp_proxy import Stream, TcpProxy
from tests.world.environment import set_connection
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_ATTEMPTS = 4
"""How many attempts meet an outage of two minutes: at once, and 15, 45 and 105 seconds later."""
_IN_CHUNKS = {"limits": "{share: 1.0, records_per_second: 5}"}
_CHUNK = 5


class _Outage(TcpProxy):
    """Stands before PostgreSQL, and can take it away."""

    def __init__(self, dsn: str) -> None:
        (port,) = free_ports(1)
        super().__init__({port: urlsplit(dsn).port or 5432})
        self.dsn = dsn.replace(f":{urlsplit(dsn).port}/", f":{port}/")
        assert self.dsn != dsn, "the server is reached by a port"
        self.is_away = False

    def begin(self) -> None:
        """Cut every connection, and let none in."""
        self.is_away = True
        self.cut_all()

    def end(self) -> None:
        """Allow connections again."""
        self.is_away = False

    async def carry(self, client: Stream, server: Stream) -> None:
        """Pass everything on, unless the server is away."""
        ways = [] if self.is_away else [(client, server), (server, client)]
        passing = [asyncio.create_task(_copy(*way)) for way in ways]
        try:
            if passing:
                await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in passing:
                task.cancel()
            server[1].close()


async def _copy(source: Stream, target: Stream) -> None:
    with suppress(OSError):
        while content := await source[0].read(65_536):
            target[1].write(content)
            await target[1].drain()


@scenario(
    row=46,
    name="PostgreSQL is away for two minutes",
    happens=(
        "The store's database restarts or fails over, once while a window is read and once while its repair is on its "
        "way. A script that starts again from the beginning has written some of its rows by then."
    ),
    made=(
        "A proxy cuts every connection to PostgreSQL and lets none in: before the snapshots, and in the middle of a "
        f"plan. A step that fails is tried again, {_ATTEMPTS} times for nothing: as often as an outage of two minutes "
        "is met at the delays of the DAG. Nothing else is done."
    ),
    why=(
        "What may pass is tried again for hours (`retry_for`), with growing delays, and each attempt goes on behind "
        "what the one before committed: chunks whose receipt stands in the store are not written again."
    ),
    covered_by=("tests/integration/spark/test_unfinished_windows.py",),
)
def postgres_away(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop={"compensation": "{missing: upsert}"}, compensation=_IN_CHUNKS)
    outage = _Outage(shop.dsn)
    outage.start()
    lab.ends.callback(outage.stop)
    set_connection(lab.patch, "db", connection_postgres(outage.dsn))
    made = orders(range(lab.random.randint(40, 80)))
    lost = lab.random.sample(made, lab.random.randint(14, 24))
    shop.trade(made, unloaded=lost)
    answer = _by_a_script(lab, outage, lost)

    context = shop.open()
    outage.begin()
    at_snapshot = _tried_again(lambda: shop.snapshot(context), outage)
    shop.reconcile(context)
    shop.validate(context)
    plan = plan_window(context).plan
    assert plan is not None
    with ThreadPoolExecutor() as aside:
        begun = aside.submit(_begin_behind_a_chunk, lab, outage, plan.id)
        at_repair = _tried_again(lambda: compensate_window(window_context(context.window), lambda _: None), outage)
        begun.result()
    rows = sorted(shop.sql("select id, amount::text from warehouse"))
    assert rows == sorted((order["id"], order["amount"]) for order in made), rows
    assert (at_snapshot, at_repair) == (_ATTEMPTS, _ATTEMPTS)
    window = Window(
        judged=shop.verified_with_outcomes(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(lost)},
            found={STORE_HOP: {order["id"]: ("missing", "lost_after_topic") for order in lost}},
            messages=(f"{STORE_HOP}: {len(lost)} repaired",),
        ),
    )
    truth = f"Here {len(lost)} of {len(made)} rows are lost, and written in chunks of {_CHUNK}."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _begin_behind_a_chunk(lab: Lab, outage: _Outage, plan: str) -> None:
    lab.shop.wait_for_chunks(plan, 1)
    outage.begin()


def _tried_again(step: Callable[[], object], outage: _Outage) -> int:
    """Try a step until it is done, as Airflow does; the outage ends at last. Return how many attempts failed."""
    for failed in range(_ATTEMPTS + 1):
        if failed == _ATTEMPTS:
            outage.end()
        try:
            step()
        except TransientError:
            if failed == _ATTEMPTS:
                raise
        else:
            return failed
    raise AssertionError("unreachable")


def _by_a_script(lab: Lab, outage: _Outage, lost: Sequence[Order]) -> Naive:
    """Return what a script does that writes row by row into a copy of the table, and begins again when cut off."""
    shop = lab.shop
    shop.sql("create table copy (like warehouse)")
    written = lab.random.randint(3, len(lost) - 3)

    def attempt(cut_at: int | None) -> None:
        with closing(psycopg2.connect(outage.dsn)) as session, session.cursor() as cursor:
            session.autocommit = True
            for number, order in enumerate(lost):
                if number == cut_at:
                    outage.begin()
                cursor.execute("insert into copy (id, amount, at) values (%(id)s, %(amount)s, %(at)s)", order)

    with pytest.raises(psycopg2.OperationalError):
        attempt(written)
    outage.end()
    attempt(None)
    rows = shop.count("copy")
    return Naive(
        answer=naive.NaiveAnswer(
            check="a script that writes what is missing row by row, and begins again when it is cut off",
            text=f"{rows} rows for {len(lost)} orders",
            conclusion=naive.compared(len(lost), rows),
        ),
        expected=f"{written} repeated",
    )
