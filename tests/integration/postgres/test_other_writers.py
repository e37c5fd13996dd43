"""Test that production writers go on while a chunk is written, and that nothing is lost or doubled between them."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg2
import pytest

from makewhole.model.errors import TransientError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.write import apply, halving
from makewhole.sql import PgCursor
from makewhole.tables.items import QuarantineRows, RestoreRow
from tests.integration.postgres.store import PLAN, Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

COLUMNS = "id text, amount int, version int, hits int default 0"
UNIQUE = f"create table store ({COLUMNS}, primary key (id))"
PARTITIONED = (
    f"create table store ({COLUMNS}, primary key (id)) partition by hash (id);"
    "create table store_0 partition of store for values with (modulus 2, remainder 0);"
    "create table store_1 partition of store for values with (modulus 2, remainder 1)"
)
PLAIN = f"create table store ({COLUMNS})"
APPEARED = Refusal(RefusalCode.ARRIVED, "a row of this key appeared after the plan was made")
CHANGED = Refusal(RefusalCode.STALE, "the row of this key changed after the plan was made")


@pytest.fixture
def store(database: str) -> Store:
    return Store(database, version="version")


@pytest.fixture(params=[1, 1_000], ids=["together", "one by one"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(halving, "_FEW", request.param)
    return int(request.param)


@contextmanager
def open_transaction(store: Store, statement: str) -> Iterator[PgCursor]:
    """Run a statement as a production writer that has not committed yet."""
    with closing(psycopg2.connect(store.connection.dsn)) as session, session.cursor() as cursor:
        cursor.execute(statement)
        yield cursor
        session.commit()


@pytest.mark.parametrize("ddl", [UNIQUE, PARTITIONED], ids=["unique", "partitioned"])
def test_a_writer_of_other_rows_does_not_hold_up_a_chunk(store: Store, ddl: str, few: int) -> None:
    store.sql(ddl)
    store.sql("insert into store (id, amount) values ('k2', 1)")
    items = [
        store.missing(0, "k1", '{"amount": 1}', ("id", "amount")),
        store.mismatched(1, "k2", '{"amount": 2}', ("id", "amount")),
    ]
    with open_transaction(store, "insert into store (id, amount) values ('other', 1)"):
        began = time.monotonic()
        assert store.apply(*items).refused == {}
        assert time.monotonic() - began < 5
    undo = [RestoreRow(seq=seq, key=f"k{effect.seq + 1}", effect=effect) for seq, effect in enumerate(store.effects())]
    with open_transaction(store, "insert into store (id, amount) values ('another', 1)"):
        assert store.apply(*undo, plan=f"{PLAN}-undo").refused == {}
    assert store.sql("select id, amount from store order by id") == [("another", 1), ("k2", 1), ("other", 1)]


def test_without_an_index_only_a_chunk_that_inserts_waits_for_writers(
    store: Store, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "_PATIENCE_SECONDS", 1.0)
    store.sql(PLAIN)
    store.sql("insert into store (id, amount) values ('k2', 1), ('k3', 1), ('k3', 2)")
    first, second = store.rows("k3")
    with open_transaction(store, "insert into store (id, amount) values ('k1', 1)"):
        mended = store.mismatched(0, "k2", '{"amount": 2}', ("id", "amount"))
        assert store.apply(mended).refused == {}
        aside = QuarantineRows(seq=0, key="k3", survivor=first, extras=(second,))
        assert store.apply(aside, chunk=1).refused == {}
        put_back, _ = sorted(store.effects(), key=lambda effect: effect.chunk)
        assert store.apply(RestoreRow(seq=0, key="k2", effect=put_back), plan=f"{PLAN}-undo").refused == {}
        with pytest.raises(TransientError, match="a lock was not free in time"):
            store.apply(store.missing(0, "k1", '{"amount": 1}', ("id", "amount")), chunk=2)
    item = store.missing(0, "k1", '{"amount": 1}', ("id", "amount"))
    assert store.apply(item, chunk=2).refused == {0: APPEARED}
    assert store.sql("select id, amount from store order by id") == [("k1", 1), ("k2", 1), ("k3", 1)]


@pytest.mark.parametrize("theirs", [None, 5, 1])
def test_a_key_that_is_inserted_meanwhile_is_there_once(store: Store, few: int, theirs: int | None) -> None:
    """Whatever its version: nothing has judged it."""
    store.sql(UNIQUE)
    items = [store.missing(seq, f"k{seq}", '{"version": 3}', ("id", "version")) for seq in range(3)]
    with ThreadPoolExecutor() as pool:
        with open_transaction(store, f"insert into store (id, version) values ('k1', {theirs or 'null'})"):
            applying = pool.submit(store.apply, *items)
            time.sleep(0.3)
        refused = applying.result().refused
    assert refused == {1: APPEARED}
    assert store.sql("select id, version from store order by id") == [("k0", 3), ("k1", theirs), ("k2", 3)]
    assert [effect.seq for effect in store.effects()] == [2, 0]


@pytest.mark.parametrize("ddl", [UNIQUE, PARTITIONED, PLAIN], ids=["unique", "partitioned", "no index"])
@pytest.mark.parametrize(
    "theirs", ["update store set version = 9, hits = 1 where id = 'k1'", "delete from store where id = 'k1'"]
)
def test_a_row_that_is_changed_meanwhile_is_left_alone(store: Store, few: int, ddl: str, theirs: str) -> None:
    store.sql(ddl)
    store.sql("insert into store (id, version) select 'k' || n, 1 from generate_series(0, 2) as n")
    items = [store.mismatched(seq, f"k{seq}", '{"version": 3}', ("id", "version")) for seq in range(3)]
    with ThreadPoolExecutor() as pool:
        with open_transaction(store, theirs):
            applying = pool.submit(store.apply, *items)
            time.sleep(0.3)
        refused = applying.result().refused
    is_gone = theirs.startswith("delete")
    assert refused == {
        1: Refusal(RefusalCode.ERASED, "the row of this key is gone since the plan was made") if is_gone else CHANGED
    }
    kept = [] if is_gone else [("k1", 9, 1)]
    assert store.sql("select id, version, hits from store order by id") == [("k0", 3, 0), *kept, ("k2", 3, 0)]


def test_two_writers_on_the_same_keys_lose_and_double_nothing(store: Store) -> None:
    """Production counts hits of its keys, key by key; a plan writes the amounts of the same keys, over and over."""
    store.sql(UNIQUE)
    is_over = threading.Event()
    hit = "insert into store (id, hits) values (%s, 1) on conflict (id) do update set hits = store.hits + 1"

    def count_hits(first: int) -> int:
        done = 0
        with closing(psycopg2.connect(store.connection.dsn)) as session, session.cursor() as cursor:
            session.autocommit = True
            while not is_over.is_set():
                cursor.execute(hit, (f"k{(first + done * 7) % 60}",))
                done += 1
        return done

    done = 0
    with ThreadPoolExecutor() as pool:
        counting = [pool.submit(count_hits, first) for first in range(3)]
        try:
            for chunk in range(8):
                items = [store.missing(seq, f"k{seq}", f'{{"amount": {chunk}}}', ("id", "amount")) for seq in range(60)]
                known = {seq: store.rows(f"k{seq}") for seq in range(chunk, 60, 8)}
                items = [
                    store.mismatched(item.seq, item.key, item.value, item.columns) if known.get(item.seq) else item
                    for item in items
                ]
                done += store.apply(*items, chunk=chunk).actions
        finally:
            is_over.set()
        hits = sum(future.result() for future in counting)
    assert store.sql("select count(*), count(distinct id), sum(hits) from store") == [(60, 60, hits)]
    assert len(store.effects()) == done


def test_while_a_chunk_waits_for_the_table_other_writers_pass(store: Store) -> None:
    store.sql(PLAIN)
    with ThreadPoolExecutor() as pool:
        with open_transaction(store, "insert into store (id) values ('slow')"):
            applying = pool.submit(store.apply, store.missing(0, "k1", '{"amount": 1}', ("id", "amount")))
            time.sleep(0.2)
            waits = []
            for number in range(4):
                began = time.monotonic()
                store.sql("insert into store (id) values (%s)", f"other {number}")
                waits.append(time.monotonic() - began)
                time.sleep(0.3)
            assert max(waits) < 2
            assert not applying.done()
        assert applying.result().refused == {}
    assert store.sql("select count(*) from store") == [(6,)]
