"""Take a window from its opening to its certificate, keep the key index small, and remove what was kept long enough.

Three days were certified before. Of the fourth one order is not loaded, one is there twice and one has another amount;
the file tolerates one of each, so that the window is certified all the same. Each step is done as its task does it: the
tasks of Spark run one after the other in the runner's own process.
"""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from makewhole.journal import windows
from makewhole.journal.database import JournalSession, connect
from makewhole.key_index.status import compact
from makewhole.lake.storage import Storage
from makewhole.model.errors import PermanentError
from makewhole.retention.house import house_of
from makewhole.retention.keep_house import keep_house
from makewhole.window.context import WindowContext, window_context
from tests.crash.plan.case_settings import CaseSettings
from tests.world.environment import service_environment
from tests.world.in_process import InProcessCarrier
from tests.world.orders import Order, orders
from tests.world.plain_gate import evaluate_plainly
from tests.world.topics import make_topic
from tests.world.windows import ReconciledShop

PIPELINE = "shop"
DAYS = 3
"""The days whose windows are certified before the one of the phases, which is that of the day after them."""
WINDOW = DAYS + 1
ORDERS = 5
POINTS = ["orders", "outbox", "warehouse"]
KEEP = {"archives": "30d", "attempts": "2d"}
LONG_AGO = timedelta(days=100)


def shop_of(settings: CaseSettings) -> ReconciledShop:
    """Return the shop of a case. The environment of this process is made that of its service: the storage is below the
    working directory, so that files have the same names whose they are."""
    folder = Path(settings.storage).parent
    os.chdir(folder)
    shop = ReconciledShop(
        carrier=InProcessCarrier(),
        bootstrap=settings.bootstrap,
        dsn=settings.target,
        journal=settings.journal,
        folder=folder,
        topic=settings.topic,
    )
    # What the proxy for PostgreSQL passes on is not encrypted.
    own = {"MAKEWHOLE_STORAGE": Path(settings.storage).name, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
    os.environ |= {**service_environment(shop, folder), **own}
    return shop


def orders_of(day: int) -> list[Order]:
    """Return the orders of a day."""
    return orders(range(100 * day, 100 * day + ORDERS), day)


def do_history(settings: CaseSettings) -> str:
    """Take the orders of all days through the systems, and certify the days before."""
    shop = shop_of(settings)
    shop.file.parent.mkdir()
    one_of_each = dict.fromkeys(("missing", "duplicate", "mismatched"), "1")
    shop.describe(tolerance=one_of_each, is_observing=True, keep=KEEP)
    shop.make_tables()
    make_topic(shop.admin, shop.topic)
    for day in range(DAYS):
        shop.trade(orders_of(day))
    missing, duplicate, mismatched, *others = orders_of(DAYS)
    shop.trade([missing, duplicate, *others], unloaded=[missing])
    shop.write("warehouse", [duplicate])
    shop.write("outbox", [mismatched])
    shop.send([mismatched])
    shop.write("warehouse", [{**mismatched, "amount": "0.50"}])
    shop.trade(orders_of(DAYS + 1))
    with pytest.MonkeyPatch.context() as patch:
        evaluate_plainly(patch)
        return " ".join(shop.whole_way(day)[1].state.value for day in range(DAYS))


def do_open(settings: CaseSettings) -> str:
    """Open the window, at the request of one run."""
    opened = shop_of(settings).ask(DAYS, request="the run")
    return f"{opened.window.number}/{opened.window.revision}"


def do_snapshot(settings: CaseSettings) -> str:
    """Take its snapshots."""
    shop = shop_of(settings)
    return " ".join(shop.snapshot(_context(shop)))


def do_reconcile(settings: CaseSettings) -> str:
    """Compare them."""
    shop = shop_of(settings)
    shop.reconcile(_context(shop))
    return ""


def do_validate(settings: CaseSettings) -> str:
    """Ask the gate."""
    shop = shop_of(settings)
    with pytest.MonkeyPatch.context() as patch:
        evaluate_plainly(patch)
        return shop.validate(_context(shop)).answer.value


def do_certify(settings: CaseSettings) -> str:
    """Close the window."""
    shop = shop_of(settings)
    closed = shop.certify(_context(shop))
    return f"{closed.state.value}: {closed.reason or ''}"


def do_merge(settings: CaseSettings) -> str:
    """Keep the key index small, as each night; files that are not read any more go at once."""
    shop = shop_of(settings)
    with connect(shop.journal) as journal:
        done = list(compact(journal, Storage.from_environment(), PIPELINE, grace=timedelta(0)))
    return " ".join(str(run.merges) for run in done)


def do_keep(settings: CaseSettings) -> str:
    """Remove what was kept long enough.

    Raises:
        PermanentError: something stays.
    """
    shop = shop_of(settings)
    with JournalSession(shop.journal) as journal:
        outcomes = list(keep_house(house_of(shop.pipeline, journal)))
    stays = [outcome.stays for outcome in outcomes if outcome.stays is not None]
    if stays:
        raise PermanentError("; ".join(stays))
    return " ".join(f"{outcome.kind.value} {outcome.window}" for outcome in outcomes)


def do_rest(settings: CaseSettings) -> str:
    """Take the window to its end from wherever it is, and the one of the day after it all the way."""
    for step in (do_open, do_snapshot, do_reconcile, do_validate, do_certify):
        step(settings)
    shop = shop_of(settings)
    with pytest.MonkeyPatch.context() as patch:
        evaluate_plainly(patch)
        return shop.whole_way(DAYS + 1)[1].state.value


def do_night(settings: CaseSettings) -> str:
    """Do all that is done each night."""
    return f"{do_merge(settings)} {do_keep(settings)}"


def _context(shop: ReconciledShop) -> WindowContext:
    with connect(shop.journal) as journal:
        return window_context(windows.load(journal, PIPELINE, WINDOW, 1), shop.pipeline)


PHASES = {
    "open": do_open,
    "snapshot": do_snapshot,
    "reconcile": do_reconcile,
    "validate": do_validate,
    "certify": do_certify,
    "merge": do_merge,
    "keep": do_keep,
}
"""The steps of a window in their order, and what is done each night."""

WORK = {**PHASES, "history": do_history, "rest": do_rest, "night": do_night}
"""All that a runner does: the phases, what is before them, and what comes after."""
