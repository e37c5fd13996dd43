"""Test for which tables the catalogue promises one row of a key; in all others a second one is looked for."""

import pytest

from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.connect import connect
from makewhole.postgres.table import describe_table
from makewhole.postgres.write import upsert_many as upsert_many_module
from makewhole.postgres.write.chunk import TableChunk
from makewhole.tables.items import UpsertRow
from makewhole.tables.receipts import ChunkId
from tests.integration.postgres.store import PLAN, Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PLAIN = "year int, id text, amount int"
PROMISED = {
    "primary key": f"create table store ({PLAIN}, primary key (id))",
    "unique": f"create table store ({PLAIN}, unique (id))",
    "part of the key": f"create table store ({PLAIN}); create unique index on store (id)",
    "more columns beside": f"create table store ({PLAIN}); create unique index on store (id) include (amount)",
    "other type of PostgreSQL's": "create table store (year int, id varchar(9), amount int, unique (id))",
    "collation of its own": 'create table store (year int, id text collate "C", amount int, unique (id))',
    "partitions": "create table store (year int, id text, amount int, primary key (year, id)) partition by list (year);"
    "create table store_1 partition of store for values in (1)",
    "whole key": f"create table store ({PLAIN}, unique (id, year))",
}
SECOND = "insert into store (year, id, amount) values (1, 'k1', 9)"
UNKNOWN = {
    "no index": (f"create table store ({PLAIN})", SECOND),
    "not unique": (f"create table store ({PLAIN}); create index on store (id)", SECOND),
    "more than the key": (f"create table store ({PLAIN}, unique (id, amount))", SECOND),
    "only some rows": (f"create table store ({PLAIN}); create unique index on store (id) where amount < 9", SECOND),
    "an expression": (
        f"create table store ({PLAIN}); create unique index on store ((id || amount::text))",
        SECOND,
    ),
    "only at the end": (f"create table store ({PLAIN}, unique (id, year) deferrable)", None),
    "other operators": (
        f"create table store ({PLAIN}); create unique index on store (id text_pattern_ops, year)",
        None,
    ),
    "other collation": (f'create table store ({PLAIN}); create unique index on store (id collate "C", year)', None),
    "type of people's own": (
        f"create domain word as text; create table store ({PLAIN.replace('text', 'word')}, unique (id))",
        None,
    ),
    "child": (
        f"create table store ({PLAIN}, primary key (id)); create table newer () inherits (store)",
        SECOND.replace("store", "newer"),
    ),
    "partitions, one still without": (
        "create table store (year int, id text, amount int) partition by list (year);"
        "create table store_1 partition of store for values in (1);"
        "create unique index on only store (year, id)",
        None,
    ),
    "exclusion": (
        f"create table store ({PLAIN}, exclude using btree (id with =))",
        None,
    ),
}


@pytest.fixture
def store(database: str) -> Store:
    return Store(database, key=("year", "id"))


def has_unique_keys(store: Store) -> bool:
    identity = ChunkId(plan=PLAN, plan_sha256="0" * 64, target="store", chunk=0, lease_epoch=1)
    with connect(store.connection) as session:
        table = describe_table(session, store.point)
        return TableChunk(session=session, table=table, point=store.point, id=identity).has_unique_keys


def mismatched(store: Store, count: int = 20) -> list[UpsertRow]:
    store.sql("insert into store (year, id, amount) select 1, 'k' || n, n from generate_series(0, %s) as n", count - 1)
    keys = [f'["1","k{number}"]' for number in range(count)]
    return [store.mismatched(seq, key, '{"amount": 100}', ("year", "id", "amount")) for seq, key in enumerate(keys)]


@pytest.mark.parametrize("ddl", PROMISED.values(), ids=PROMISED)
def test_the_catalogue_promises_one_row(store: Store, ddl: str) -> None:
    store.sql(ddl)
    assert has_unique_keys(store)
    assert store.apply(*mismatched(store)).refused == {}
    assert store.sql("select count(*) from store where amount = 100") == [(20,)]


@pytest.mark.parametrize(("ddl", "second"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_second_row_is_looked_for(
    store: Store, ddl: str, second: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upsert_many_module, "CannotRunTogether", AssertionError)  # together, all of them
    store.sql(ddl)
    assert not has_unique_keys(store)
    items = mismatched(store)
    if second is not None:
        store.sql(second)
    refused = store.apply(*items).refused
    assert refused == (
        {1: Refusal(RefusalCode.STALE, "the row of this key changed after the plan was made")} if second else {}
    )
    assert store.sql("select count(*) from store where amount = 100") == [(19 if second else 20,)]


def test_an_index_that_others_are_still_building_promises_nothing(store: Store) -> None:
    """Its build failed, as a concurrent one does on rows that are alike."""
    store.sql(f"create table store ({PLAIN}); create unique index store_id on store (id)")
    store.sql("update pg_index set indisvalid = false where indexrelid = 'store_id'::regclass")
    assert not has_unique_keys(store)
