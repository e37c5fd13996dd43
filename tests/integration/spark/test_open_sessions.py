"""Test that no transaction is held open for longer than it is needed: measured in `pg_stat_activity`."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg2
import pytest

from makewhole.journal.database import connect
from makewhole_spark.carrier import Carrier
from makewhole_spark.snapshot.read_piece import TablePiece, TopicPiece
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

_OPEN = (
    "select datname from pg_stat_activity where application_name = 'makewhole' and datname = %s "
    "and xact_start is not null and state like 'idle in transaction%%'"
)
_HELD = (
    "select backend_xmin is not null from pg_stat_activity where application_name = 'makewhole' and datname = %s "
    "and xact_start is not null and state like 'idle in transaction%%'"
)


@dataclass
class Watched:
    """The kind of each piece of work that Spark did, and the sessions that were in a transaction meanwhile."""

    seen: list[tuple[str, int]] = field(default_factory=list)


@contextmanager
def watched(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, count: Callable[[], int]) -> Iterator[Watched]:
    """Count open sessions in the middle of all work that is carried, on the driver's side."""
    watch, really = Watched(), type(shop.carrier).carry

    def carry(carrier: Carrier, tasks: Any, run: Any) -> Any:
        kinds = sorted({type(task).__name__ for task in tasks})
        stop = threading.Event()
        most = [0]

        def look() -> None:
            while not stop.wait(0.02):
                most[0] = max(most[0], count())

        looking = threading.Thread(target=look)
        looking.start()
        time.sleep(0.1)  # so that something is counted, however short the work
        try:
            return really(carrier, tasks, run)
        finally:
            stop.set()
            looking.join()
            watch.seen.extend((kind, most[0]) for kind in kinds)

    monkeypatch.setattr(type(shop.carrier), "carry", carry)
    yield watch


def counter(dsn: str, statement: str) -> Callable[[], int]:
    """Return what counts the sessions of a database that a statement finds."""
    name = psycopg2.extensions.parse_dsn(dsn)["dbname"]
    session = psycopg2.connect(dsn)
    session.autocommit = True

    def count() -> int:
        with session.cursor() as cursor:
            cursor.execute(statement, (name,))
            return len(cursor.fetchall())

    return count


def test_the_journal_is_not_in_a_transaction_while_spark_works(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.trade(orders(range(200)), unloaded=orders(range(3)), unsent=orders(range(5, 7)))
    context = shop.open()
    with watched(shop, monkeypatch, counter(shop.journal, _OPEN)) as journal:
        shop.judge(context)

    assert {kind for kind, _ in journal.seen} >= {"TopicPiece", "TablePiece", "BucketTask"}
    assert {most for _, most in journal.seen} == {0}, journal.seen


def test_no_view_of_a_table_is_held_open_while_topics_are_read(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.trade(orders(range(200)))
    context = shop.open()
    with watched(shop, monkeypatch, counter(shop.dsn, _HELD)) as people:
        shop.snapshot(context)

    held = dict(people.seen)
    assert held[TopicPiece.__name__] == 0
    assert held[TablePiece.__name__] >= 1, "a table is read under one view of it"


def test_the_gate_is_asked_with_no_transaction_open(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    from makewhole_spark import validate

    shop.trade(orders(range(20)))
    context = shop.open()
    shop.judge(context)
    count, seen, really = counter(shop.journal, _OPEN), [], validate.validate

    def looked(*arguments: Any) -> Any:
        seen.append(count())
        return really(*arguments)

    monkeypatch.setattr(validate, "validate", looked)
    with connect(shop.journal) as journal:
        report = validate.ask_gate(shop.carrier, journal, context)
    assert (report.answer.value, seen) == ("PASS", [0])
