"""Read a standby that lags, and lose commits that did not wait for the disk (rows 26 and 27)."""

import time
from contextlib import suppress
from dataclasses import replace

from makewhole.model.errors import TransientError
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_postgres
from makewhole.stack.postgres_server import PostgresServer
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.environment import set_connection
from tests.world.orders import Order, orders
from tests.world.postgres_servers import hold_wal_back, kill, standby_of
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import run_sql

_LAG = "5s"
_PATIENCE_SECONDS, _PAUSE_SECONDS = 60.0, 0.5


@scenario(
    row=26,
    name="A standby that lags",
    happens=(
        "Ledger and store are read at a standby, to spare their primary, and the standby replays what was committed "
        "some time later. Rows that are there at the primary are not there yet."
    ),
    made=f"A primary, and a standby with `recovery_min_apply_delay={_LAG}` that the connection leads to.",
    why=(
        "A standby is recognised, and nothing is read from it before it has replayed what was committed when an "
        "absence begins to count: the step is tried again until then."
    ),
)
def standby_lags(lab: Lab) -> Outcome:
    shop = lab.shop
    primary = _server(lab, "primary", {})
    shop.dsn = primary.dsn("postgres")
    shop.open_shop(hop={"compensation": "{missing: report}"})
    standby = standby_of(primary, shop.folder / "standby", lag=_LAG)
    lab.ends.callback(standby.stop)
    set_connection(lab.patch, "db", connection_postgres(standby.dsn("postgres")))
    made = orders(range(lab.random.randint(40, 80)))
    lost = lab.random.sample(made, lab.random.randint(3, 9))
    shop.trade(made, unloaded=lost)
    ((there,),) = run_sql(standby.dsn("postgres"), "select count(*) from warehouse")
    answer = naive.offsets(shop.bootstrap, shop.topic, there)
    context = shop.open()
    assert _held_up(lambda: shop.snapshot(context)), "the standby was read before it had the rows"
    shop.reconcile(context)
    shop.validate(context)
    return Outcome(
        truth=f"Here {len(lost)} of {len(made)} orders are lost; the standby lacks all of them for {_LAG}.",
        naive=(Naive(answer=answer, expected=f"{len(made)} lost"),),
        windows=(
            Window(
                judged=shop.certify_and_collect(context),
                expected=replace(
                    _gaps(made, lost, ("missing", "lost_after_topic")),
                    reason=f"{STORE_HOP}: {len(lost)} keys missing, 0 allowed",
                ),
            ),
        ),
    )


@scenario(
    row=27,
    name="A store that forgets what it committed",
    happens=(
        "The store's database runs with `synchronous_commit=off`, for speed. It is killed before it has written out "
        "what it had committed; the loader had its answer, and committed its offsets."
    ),
    made=(
        "A PostgreSQL of its own with `synchronous_commit=off`, whose last commits are not written out when its "
        "processes are killed with SIGKILL; then it is started again."
    ),
    why="What the store has now counts, and not what it acknowledged: the rows are looked up by key.",
)
def commits_forgotten(lab: Lab) -> Outcome:
    shop = lab.shop
    server = _server(lab, "forgetful", {"synchronous_commit": "off", "wal_writer_delay": "10s", "fsync": "on"})
    shop.dsn = server.dsn("postgres")
    set_connection(lab.patch, "db", connection_postgres(shop.dsn))
    shop.open_shop(hop={"consumer_group": shop.group, "compensation": "{missing: report}"})
    made = orders(range(lab.random.randint(40, 80)))
    kept = lab.random.randint(10, 30)
    shop.write("outbox", made)
    shop.send(made[:kept])
    shop.load()
    shop.sql("checkpoint")
    hold_wal_back(server)
    shop.send(made[kept:])
    shop.load()
    had = shop.count("warehouse")
    kill(server)
    server.start()
    lost = made[kept:]
    return Outcome(
        truth=f"Here the store had {had} of {len(made)} orders, and {shop.count('warehouse')} after it was killed.",
        naive=(Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),),
        windows=(
            Window(
                judged=shop.day(),
                expected=replace(
                    _gaps(made, lost, ("missing", "committed_before_written")),
                    reason=f"{STORE_HOP}: {len(lost)} keys missing, 0 allowed",
                ),
            ),
        ),
    )


def _server(lab: Lab, name: str, settings: dict[str, str]) -> PostgresServer:
    server = PostgresServer(lab.shop.folder / name, is_durable=False, settings=settings)
    lab.ends.callback(server.stop)
    server.start()
    return server


def _held_up(step: object) -> bool:
    """Try a step until it is done, as Airflow does; return whether it was not done at once."""
    assert callable(step)
    deadline, failed = time.monotonic() + _PATIENCE_SECONDS, 0
    while time.monotonic() < deadline:
        with suppress(TransientError):
            step()
            return failed > 0
        failed += 1
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("the standby never came so far")


def _gaps(made: list[Order], lost: list[Order], wrong: tuple[str, str]) -> Judged:
    return Judged(
        state=WindowState.GAPS.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(lost)},
        found={STORE_HOP: {order["id"]: wrong for order in lost}},
    )
