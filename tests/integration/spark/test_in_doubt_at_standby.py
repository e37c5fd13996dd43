"""Test that a store which is read at a standby has nothing called missing that is prepared at its primary.

Takes long: two servers of its own.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_postgres
from tests.world.environment import set_connection
from tests.world.orders import orders
from tests.world.postgres_servers import primary_and_standby
from tests.world.prepared import prepared_transactions
from tests.world.shop import STORE_HOP
from tests.world.sql import run_sql
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_PATIENCE_SECONDS = 30.0


@pytest.fixture
def standby(shop: ReconciledShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The standby that the shop's store is read at; what the shop writes goes to its primary."""
    with ExitStack() as ends:
        shop.dsn, standby = primary_and_standby(tmp_path, ends, 8)
        shop.describe(has_ledger=False, allow_empty=True)
        shop.make_tables()
        set_connection(monkeypatch, "db", connection_postgres(standby))
        yield standby


def replay(shop: ReconciledShop, standby: str) -> None:
    """Wait until the standby has all that was done at its primary."""
    shop.sql("create table if not exists seen (at timestamptz)")
    ((moment,),) = run_sql(shop.dsn, "insert into seen values (clock_timestamp()) returning at")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while run_sql(standby, "select to_regclass('seen') is not null") == [(False,)] or not run_sql(
        standby, f"select 1 from seen where at = '{moment.isoformat()}'"
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_key_is_pending_until_what_holds_it_is_settled(shop: ReconciledShop, standby: str) -> None:
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:3])
    with prepared_transactions(shop.dsn) as sink:
        sink.prepare("tx", "insert into warehouse (id, amount, at) values ('O3', 0, now())")
        replay(shop, standby)
        context, closed = shop.whole_way()
        assert shop.found(context, STORE_HOP) == {"O3": ("pending", "in_doubt"), "O4": ("pending", "in_doubt")}
        (transaction,) = shop.evidence(context, STORE_HOP, "O3")["in_doubt"]
        assert (transaction["prepared"], transaction["owner"]) == (None, "?")
        assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 2)
        with connect(shop.journal) as journal:
            (incident,) = incidents.of(journal, context.window)
        assert incident_sentence(incident) == (
            "2 keys of warehouse (warehouse) may be held by 1 transaction that may be prepared, which a standby does "
            f"not show: transaction {transaction['gid']}, in progress at the primary of the standby"
        )
        assert settled_by(incident).startswith("look for it at the primary, in pg_prepared_xacts")
        sink.roll_back("tx")
    shop.write("warehouse", made[3:4])
    replay(shop, standby)
    second, closed = shop.whole_way(1)
    assert shop.found(second, STORE_HOP) == {"O4": ("missing", "lost_after_topic")}
    assert closed.state is WindowState.GAPS
