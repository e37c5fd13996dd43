"""Hold locks that the steps of a window wait for, so that a test comes to them in the middle of what they do."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import psutil
import psycopg2

from makewhole.stack.environment import environment
from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import RUN_SECONDS, Run, Stage, until
from tests.world.sql import run_sql

_WAITING = "select client_port from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
_SECONDS = 2 * RUN_SECONDS


class Hold:
    """A lock that a window has to wait for."""

    def __init__(self, dsn: str, statement: str) -> None:
        self._dsn, self._statement = dsn, statement
        self._connection = psycopg2.connect(dsn)
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def wait(self, belongs: Callable[[psutil.Process], bool] = lambda _: True) -> psutil.Process:
        """Wait until a process of the service waits for it, of those that belong to what is tested; return that."""
        return until(lambda: self._waiting(belongs), _SECONDS, lambda: f"a session that waits for: {self._statement}")

    def _waiting(self, belongs: Callable[[psutil.Process], bool]) -> psutil.Process | None:
        ports = {port for (port,) in run_sql(self._dsn, _WAITING, self._connection.info.backend_pid)}
        owners = {
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.laddr and connection.laddr.port in ports
        }
        for pid in owners - {None, os.getpid()}:
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if not process.name().startswith("postgres") and belongs(process):
                    return process
        return None

    def release(self) -> None:
        """Release it; harmless when its server is gone."""
        with suppress(psycopg2.Error):
            self._connection.close()


@contextmanager
def held_in_snapshot(stage: Stage, shop: ScenarioShop, run: Run) -> Iterator[Hold]:
    """Hold the table that the snapshot of a run reads, until its application waits for it, and for as long as wanted
    then. Who looks at all pipelines may wait for it before."""
    stage.wait_for_task(run, "open_window", "success")  # before that, the table is looked at
    with holding(stage.status["postgres"]["dsn"], f"lock table {shop.name}.outbox in access exclusive mode") as hold:
        hold.wait(lambda process: any(shop.name in parent.cmdline() for parent in process.parents()))
        assert stage.tasks(run)["snapshot"] == "running", stage.story(run)
        yield hold


@contextmanager
def held_in_compensate(stage: Stage, shop: ScenarioShop, run: Run) -> Iterator[Hold]:
    """Hold the table that the plan of a run writes to, after its records, until its task waits for it, and for as long
    as wanted then. Who reads it does not wait."""
    with holding(stage.status["postgres"]["dsn"], f"lock table {shop.name}.warehouse in exclusive mode") as hold:
        waiting = hold.wait()
        assert stage.tasks(run)["compensate"] == "running", (waiting.cmdline(), stage.story(run))
        yield hold


def held_window(shop: ScenarioShop, stage: Stage) -> AbstractContextManager[Hold]:
    """Hold the row of the shop's window in the journal, which the results of comparing wait for."""
    journal = environment(stage.home)["MAKEWHOLE_JOURNAL_DSN"]
    return holding(journal, f"select from makewhole.window where pipeline = '{shop.name}' for no key update")


@contextmanager
def holding(dsn: str, statement: str) -> Iterator[Hold]:
    """Hold what a statement locks until the end, or until it is released."""
    hold = Hold(dsn, statement)
    try:
        yield hold
    finally:
        hold.release()
