"""Test that a chunk writes nothing that a prepared transaction may hold, and does not wait for it."""

import time
from collections.abc import Iterator

import pytest

from makewhole.model.refusal import RefusalCode
from makewhole.postgres.chunks import open_forecaster
from makewhole.tables.items import QuarantineRows, RowItem
from makewhole.tables.receipts import ChunkId, ReceiptRow
from tests.integration.postgres.store import PLAN, Store
from tests.world.prepared import PreparedTransactions, prepared_transactions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

UNIQUE = "create table store (id text primary key, amount int)"
PLAIN = "create table store (id text, amount int)"
ROW = ("id", "amount")


@pytest.fixture
def store(database: str) -> Store:
    return Store(database)


@pytest.fixture
def sink(store: Store) -> Iterator[PreparedTransactions]:
    with prepared_transactions(store.connection.dsn) as sink:
        yield sink


def new(store: Store, seq: int, key: str) -> RowItem:
    return store.missing(seq, key, '{"amount": 1}', ROW)


def codes(receipt: ReceiptRow) -> dict[int, RefusalCode]:
    return {seq: refusal.code for seq, refusal in receipt.refused.items()}


def test_a_key_that_is_held_is_refused_at_once_and_others_are_written(store: Store, sink: PreparedTransactions) -> None:
    store.sql(UNIQUE)
    sink.prepare("flow-[7,9)", "insert into store values ('k2', 5)")
    began = time.monotonic()
    receipt = store.apply(*(new(store, number, f"k{number}") for number in range(12)))
    assert time.monotonic() - began < 5
    assert codes(receipt) == {2: RefusalCode.IN_DOUBT}
    text = str(receipt.refused[2])
    assert text.startswith(
        "in doubt: the key, or its row, may be held by the prepared transaction 'flow-[7,9)' of postgres, prepared 20"
    )
    assert text.endswith("`prepared_transaction` in the runbook), then run this window again")
    sink.commit("flow-[7,9)")
    assert store.sql("select amount from store where id = 'k2'") == [(5,)]
    assert store.sql("select count(*) from store") == [(12,)]


def test_what_was_held_is_written_once_it_is_rolled_back(store: Store, sink: PreparedTransactions) -> None:
    store.sql(UNIQUE)
    sink.prepare("tx", "insert into store values ('k', 5)")
    assert codes(store.apply(new(store, 0, "k"))) == {0: RefusalCode.IN_DOUBT}
    sink.roll_back("tx")
    assert codes(store.apply(new(store, 0, "k"), plan="shop-1-aaaaaaaaaaaa")) == {}
    assert store.sql("select * from store") == [("k", 1)]


def test_without_a_unique_key_no_new_row_is_written_and_rows_that_are_free_are(
    store: Store, sink: PreparedTransactions
) -> None:
    store.sql(PLAIN)
    store.sql("insert into store values ('a', 1), ('b', 1)")
    change = [store.mismatched(2, "a", '{"amount": 2}', ROW), store.mismatched(3, "b", '{"amount": 2}', ROW)]
    sink.prepare("tx", "insert into store values ('k', 5)", "update store set amount = 7 where id = 'b'")
    items = [new(store, 0, "k"), new(store, 1, "other"), *change]
    with open_forecaster(store.connection) as forecaster:
        chunk = ChunkId(plan=PLAN, plan_sha256="0" * 64, target="store", chunk=0, lease_epoch=1)
        forecast = forecaster.forecast_chunk(store.point, chunk, items, lambda _: ())
    assert {seq: refusal.code for seq, refusal in forecast.refused.items()} == dict.fromkeys(
        (0, 1), RefusalCode.IN_DOUBT
    )
    assert codes(store.apply(*items)) == dict.fromkeys((0, 1, 3), RefusalCode.IN_DOUBT)
    sink.commit("tx")
    assert store.sql("select * from store order by id") == [("a", 2), ("b", 7), ("k", 5)]


def test_no_row_is_moved_aside_that_a_transaction_in_doubt_deletes_or_locks(
    store: Store, sink: PreparedTransactions
) -> None:
    store.sql(PLAIN)
    store.sql("insert into store values ('a', 1), ('a', 1), ('b', 1), ('b', 1)")
    items = [
        QuarantineRows(seq=seq, key=key, survivor=store.rows(key)[0], extras=store.rows(key)[1:])
        for seq, key in enumerate("ab")
    ]
    deletes = "delete from store where ctid = (select max(ctid) from store where id = 'a')"
    sink.prepare("deletes", deletes)
    assert codes(store.apply(*items)) == {0: RefusalCode.IN_DOUBT}
    sink.commit("deletes")
    assert store.sql("select id, count(*) from store group by id order by id") == [("a", 1), ("b", 1)]
    sink.prepare("locks", "select * from store where id = 'a' for update")
    change = store.mismatched(0, "a", '{"amount": 2}', ROW)
    assert codes(store.apply(change, plan="shop-1-aaaaaaaaaaaa")) == {0: RefusalCode.IN_DOUBT}


def test_many_held_keys_do_not_hold_up_a_chunk(store: Store, sink: PreparedTransactions) -> None:
    store.sql(UNIQUE)
    sink.prepare("tx", "insert into store select 'k' || n, 5 from generate_series(1, 200) as n")
    began = time.monotonic()
    receipt = store.apply(*(new(store, number, f"k{number}") for number in range(1, 201)))
    assert time.monotonic() - began < 20
    assert codes(receipt) == dict.fromkeys(range(1, 201), RefusalCode.IN_DOUBT)


def test_a_transaction_on_another_table_refuses_nothing(store: Store, sink: PreparedTransactions) -> None:
    store.sql(PLAIN)
    store.sql("create table other (id text)")
    sink.prepare("tx", "insert into other values ('k')")
    assert codes(store.apply(new(store, 0, "k"))) == {}
