"""Test keys that a sink's prepared transactions may hold: not known, until they are settled or have waited too long."""

from collections.abc import Iterator

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import IncidentKind
from makewhole.model.incident_text import incident_sentence
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.prepared import PreparedTransactions, prepared_transactions
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

PENDING, MISSING = ("pending", "in_doubt"), ("missing", "in_doubt")
TOPIC_LOSS = ("missing", "lost_after_topic")


@pytest.fixture
def sink(shop: ReconciledShop) -> Iterator[PreparedTransactions]:
    """The sink of the shop's store."""
    shop.describe(has_ledger=False)
    with prepared_transactions(shop.dsn) as sink:
        yield sink


def found(shop: ReconciledShop, context: WindowContext) -> dict[str, tuple[str, str]]:
    return shop.found(context, STORE_HOP)


def insert(shop: ReconciledShop, *keys: str) -> str:
    """Return the statement that inserts rows as those of the store are."""
    (columns,) = shop.sql(
        "select string_agg(quote_ident(column_name), ', ' order by ordinal_position) from information_schema.columns"
        " where table_name = 'warehouse' and column_name <> 'id' and is_generated = 'NEVER'"
    )[0]
    listed = ", ".join(f"'{key}'" for key in keys)
    return f"insert into warehouse (id, {columns}) select id, {columns} from outbox where id in ({listed})"


def test_an_inserted_row_in_doubt_is_pending_with_its_transaction(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    made = orders(range(5))
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", made[:3])
    sink.prepare("flow-0-[3,4)", insert(shop, made[3]["id"]))
    context, closed = shop.whole_way()
    # Which key it holds is not known: both may be in it.
    assert found(shop, context) == {made[3]["id"]: PENDING, made[4]["id"]: PENDING}
    evidence = shop.evidence(context, STORE_HOP, made[3]["id"])
    (transaction,) = evidence["in_doubt"]
    assert (transaction["gid"], transaction["owner"], transaction["tables"]) == (
        "flow-0-[3,4)",
        "postgres",
        ["public.warehouse"],
    )
    assert transaction["prepared"].endswith("+00:00")
    assert evidence["waiting_since"] == context.window.opened_at.isoformat()
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 2)
    with connect(shop.journal) as journal:
        (incident,) = incidents.of(journal, context.window)
    assert (incident.kind, incident.point, incident.topic) == (
        IncidentKind.PREPARED_TRANSACTION,
        "warehouse",
        "warehouse",
    )
    assert incident_sentence(incident).startswith(
        "2 keys of warehouse (warehouse) may be held by 1 prepared transaction that is neither committed nor "
        "rolled back: 'flow-0-[3,4)' of postgres, prepared 20"
    )
