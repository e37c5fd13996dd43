"""Test that a chunk gives the same rows, refusals and effects, done together or one by one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.connect import connect
from makewhole.postgres.table import describe_table, rows_of_key
from makewhole.postgres.write import apply, halving
from makewhole.postgres.write.effects import effects
from makewhole.postgres.write.receipts import begin_chunk, ensure_schema, put_receipt
from makewhole.sql import PgConnection
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId
from makewhole.tables.rows import TableRow
from tests.integration.postgres.store import EMPTY, PLAN, Store
from tests.world.examples import seeds

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280), pytest.mark.usefixtures("kept")]

EXAMPLES = len(seeds(25, share=5))
PLAIN = "id text primary key, amount int, version int, note text default 'none'"
STAMP = (
    "create function stamp() returns trigger language plpgsql as $$ begin "
    "if new.amount = 3 then return null; elsif new.amount = 4 then raise exception 'no'; "
    "elsif new.amount = 5 then new.id := 'k0'; end if; new.note := 'stamped'; return new; end $$;"
    "create trigger stamp before insert or update on store for each row execute function stamp();"
)
TOUCH = (
    "create table heard (id text);"
    "create function touch() returns trigger language plpgsql as $$ begin "
    "insert into heard values (new.id); "
    "if new.amount = 3 then update store set note = 'touched' where id = new.id; "
    "elsif new.amount = 4 then update store set note = 'next' where id = 'k' || (substr(new.id, 2)::int + 1); "
    "elsif new.amount = 5 then delete from store where id = new.id; end if; return null; end $$;"
    "create trigger touch after insert or update on store for each row when (pg_trigger_depth() < 1) "
    "execute function touch();"
)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A table, the spellings of its keys (spellings of one key in one tuple), and what the point says of it."""

    ddl: str
    keys: Sequence[tuple[str, ...]]
    key: tuple[str, ...] = ("id",)
    version: str | None = None
    is_unique: bool = True
    touches_others: bool = False
    """A trigger changes rows that the chunk wrote before: their effects stay as they were."""


WORDS = [(f"k{number}",) for number in range(5)]
SHAPES = {
    "primary key": Shape(ddl=f"create table store ({PLAIN})", keys=WORDS),
    "version": Shape(ddl=f"create table store ({PLAIN})", keys=WORDS, version="version"),
    "no key": Shape(ddl=f"create table store ({PLAIN.replace('primary key', '')})", keys=WORDS, is_unique=False),
    "no key, version": Shape(
        ddl=f"create table store ({PLAIN.replace('primary key', '')})", keys=WORDS, version="version", is_unique=False
    ),
    "constraints": Shape(
        ddl=f"create table store ({PLAIN}, unique (amount), check (version < 3))", keys=WORDS, version="version"
    ),
    "deferred": Shape(
        ddl=f"create table store ({PLAIN}, unique (amount) deferrable initially deferred)",
        keys=WORDS,
        version="version",
    ),
    "identity": Shape(
        ddl="create table store (n int generated always as identity, "
        f"twice int generated always as (amount * 2) stored, {PLAIN})",
        keys=WORDS,
    ),
    "before": Shape(ddl=f"create table store ({PLAIN});{STAMP}", keys=WORDS, version="version"),
    "after": Shape(ddl=f"create table store ({PLAIN});{TOUCH}", keys=WORDS, version="version", touches_others=True),
    "numbers": Shape(
        ddl="create table store (id numeric, amount int, version int, note text)",
        keys=[(f"{number}", f"{number}.0", f"{number}.00") for number in range(5)] + [("x",), ("NaN",)],
        version="version",
        is_unique=False,
    ),
    "padded": Shape(
        ddl="create table store (id char(3), amount int, version int, note text)",
        keys=[("a", "a  ", "a "), ("bb", "bb "), ("ccc",), ("dddd",)],
        is_unique=False,
    ),
    "partitions": Shape(
        ddl="create table store (year int, id char(2), amount int, version int, note text, primary key (year, id)) "
        "partition by list (year);"
        "create table store_1 (note text, id char(2) not null, amount int, version int, year int not null);"
        "alter table store attach partition store_1 for values in (1);"
        "create table store_2 partition of store for values in (2)",
        keys=[(f'["{year}","{letter}"]', f'["0{year}","{letter}"]') for year in (1, 2, 3) for letter in ("aa", "b")]
        + [('["x","aa"]',), ('["1"]',)],
        key=("year", "id"),
        version="version",
    ),
}


drawn = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
)


class Situation:
    """A table in some state, a chunk planned on it, and what others did meanwhile: drawn."""

    def __init__(self, store: Store, shape: Shape, session: PgConnection, data: st.DataObject) -> None:
        self._store, self._shape, self._session, self._data = store, shape, session, data
        self.try_sql("truncate store")
        for spellings in shape.keys:
            for _ in range(self.draw(st.integers(0, 1 if shape.is_unique else 2))):
                self._put(self.draw(st.sampled_from(spellings)))
        self.items = [self._item(seq) for seq in range(self.draw(st.integers(1, 14)))]
        for spellings in self.draw(st.lists(st.sampled_from(shape.keys), max_size=3)):
            self._meddle(spellings)

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._data.draw(strategy)

    def try_sql(self, statement: str, *values: Any) -> None:
        """Ignore what the table does not take: others could not do it either."""
        try:
            with self._session, self._session.cursor() as cursor:
                cursor.execute(statement, values)
        except psycopg2.Error:
            pass

    def _put(self, key: str) -> None:
        names = ", ".join([*self._shape.key, "amount", "version"])
        values = [*self._parts(key), self.draw(st.integers(0, 40)), self.draw(VERSIONS)]
        self.try_sql(f"insert into store ({names}) values ({', '.join(['%s'] * len(values))})", *values)

    def _meddle(self, spellings: Sequence[str]) -> None:
        match = " and ".join(f"{name}::text = %s" for name in self._shape.key)
        match self.draw(st.sampled_from(["update", "delete", "insert"])):
            case "update":
                self.try_sql(
                    f"update store set version = %s where {match}", self.draw(VERSIONS), *self._parts(spellings[0])
                )
            case "delete":
                self.try_sql(f"delete from store where {match}", *self._parts(spellings[0]))
            case _:
                self._put(self.draw(st.sampled_from(spellings)))

    def _item(self, seq: int) -> RowItem:
        key = self.draw(st.sampled_from(self.draw(st.sampled_from(self._shape.keys))))
        before = self._rows(key)
        if before and self.draw(st.integers(0, 4)) == 0:
            keeps = self.draw(st.integers(0, min(1, len(before) - 1)))
            return QuarantineRows(seq=seq, key=key, survivor=before[0] if keeps else None, extras=before[keeps:])
        value = self._value()
        return UpsertRow(
            seq=seq,
            key=key,
            key_columns=self._shape.key,
            value=json.dumps(value),
            columns=tuple(dict.fromkeys([*self._shape.key, *value])),
            before=before if self.draw(st.integers(0, 5)) else (),
            left=EMPTY if self.draw(st.integers(0, 5)) else (),
        )

    def _rows(self, key: str) -> tuple[TableRow, ...]:
        try:
            table = describe_table(self._session, self._store.point)
            return tuple(rows_of_key(self._session, table, self._store.point, key, is_exact=False))
        except RefusedError:
            return ()

    def _value(self) -> dict[str, Any]:
        value: dict[str, Any] = {"amount": self.draw(st.one_of(st.integers(0, 12), st.just("unfit")))}
        if self.draw(st.booleans()):
            value["version"] = self.draw(VERSIONS)
        if self.draw(st.integers(0, 5)) == 0:
            value[self._shape.key[-1]] = self.draw(st.sampled_from(["k1", "2", "aa"]))
        return value

    def _parts(self, key: str) -> list[str | None]:
        parts = json.loads(key) if len(self._shape.key) > 1 else [key]
        return [*parts, *[None] * len(self._shape.key)][: len(self._shape.key)]

    def undone(self, *, few: int) -> tuple[Any, ...]:
        """Rows before the chunk, refusals of its undo, rows and effects after that; all of it is taken back."""
        chunk = ChunkId(plan=PLAN, plan_sha256="0" * 64, target="store", chunk=0, lease_epoch=1)
        undo = replace(chunk, plan=f"{PLAN}-undo")
        try:
            before = self._read("select (t.*)::text from store as t order by 1")
            begin_chunk(self._session, chunk)
            refused = self._apply(chunk, self.items, few=len(self.items))
            put_receipt(self._session, chunk, len(self.items) - len(refused), refused)
            restored = [
                RestoreRow(seq=seq, key=self.items[effect.seq].key, effect=effect)
                for seq, effect in enumerate(chain(*effects(self._session, PLAN, "store")))
            ]
            not_restored = self._apply(undo, restored, few=few)
            after = self._read("select (t.*)::text from store as t order by 1")
            return before, not_restored, after, self._read(EFFECTS.format(undo.plan))
        finally:
            self._session.rollback()

    def _apply(self, chunk: ChunkId, items: Sequence[RowItem], *, few: int) -> Mapping[int, Refusal]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(halving, "_FEW", few)
            opened = apply._open_chunk(self._session, self._store.point, chunk, items)
            return halving.run_with_halving(opened, items, apply._WRITE)

    def outcome(self, *, few: int) -> Any:
        """Rows, refusals and effects of the chunk, which is taken back; identities and places do not count."""
        chunk = ChunkId(plan=PLAN, plan_sha256="0" * 64, target="store", chunk=0, lease_epoch=1)
        try:
            begin_chunk(self._session, chunk)
            refused = self._apply(chunk, self.items, few=few)
            rows = self._read("select (to_jsonb(t.*) - 'n')::text from store as t order by 1")
            done = self._read(EFFECTS.format(PLAN))
            not_there = [] if self._shape.touches_others else self._read(NOT_THERE)
        finally:
            self._session.rollback()
        assert not_there == [], "an effect names a row that is not there"
        return refused, rows, done

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        with self._session.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()


VERSIONS = st.sampled_from([None, 0, 1, 2, 3])
EFFECTS = """
select seq, kind, to_jsonb(before::store) - 'n', to_jsonb(after::store) - 'n'
from makewhole.effect where plan = '{}' order by seq, before
"""
NOT_THERE = """
select seq from makewhole.effect as e
where kind in ('inserted', 'updated')
and not exists (select from store as t where e.place like '%' || t.ctid::text and (t.*)::text = e.after)
and not exists (select from makewhole.effect as later where later.seq > e.seq and later.before = e.after)
"""


@pytest.fixture(params=SHAPES)
def shaped(request: pytest.FixtureRequest, database: str) -> Iterator[tuple[Store, Shape, PgConnection]]:
    shape = SHAPES[request.param]
    store = Store(database, key=shape.key, version=shape.version)
    store.sql(shape.ddl)
    with connect(store.connection) as session:
        ensure_schema(session)
        yield store, shape, session


@drawn
@given(data=st.data())
def test_together_is_the_same_as_one_by_one(shaped: tuple[Store, Shape, PgConnection], data: st.DataObject) -> None:
    situation = Situation(*shaped, data)
    assert situation.outcome(few=1) == situation.outcome(few=len(situation.items))


@drawn
@given(data=st.data())
def test_an_undo_together_is_the_same_as_one_by_one(
    shaped: tuple[Store, Shape, PgConnection], data: st.DataObject
) -> None:
    situation = Situation(*shaped, data)
    before, refused, after, effects = situation.undone(few=1)
    assert (before, refused, after, effects) == situation.undone(few=100)
    if not refused and not shaped[1].touches_others:
        assert after == before


@pytest.mark.parametrize("few", [1, 100])
def test_triggers_see_rows_come_back_in_the_order_of_the_undo(
    store: Store, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of k1 comes back first; that of k0 with it touches k1, which has to be there by then."""
    store.sql(f"create table store ({PLAIN})")
    store.sql("insert into store (id, amount) values ('k0', 4), ('k1', 0)")
    store.sql(TOUCH)
    aside = QuarantineRows(seq=1, key="k1", survivor=None, extras=store.rows("k1"))
    store.apply(store.mismatched(0, "k0", '{"amount": 7}', ("id", "amount")), aside)
    monkeypatch.setattr(halving, "_FEW", few)
    undo = [RestoreRow(seq=seq, key=f"k{effect.seq}", effect=effect) for seq, effect in enumerate(store.effects())]

    assert store.apply(*undo, plan=f"{PLAN}-undo").refused == {}

    assert [item.key for item in undo] == ["k1", "k0"]
    assert store.sql("select id, amount, note from store order by id") == [("k0", 4, "none"), ("k1", 0, "next")]


def test_one_bad_row_leaves_the_others_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.sql(f"create table store ({PLAIN}, check (amount <> 777))")
    alone = count_calls(monkeypatch, "run_alone")
    items = [store.missing(seq, f"k{seq}", json.dumps({"amount": seq}), ("id", "amount")) for seq in range(2000)]
    assert list(store.apply(*items).refused) == [777]
    assert len(alone) <= 2 * halving._FEW
    assert store.sql("select count(*) from store") == [(1999,)]


def test_stale_rows_are_reported_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.sql(f"create table store ({PLAIN})")
    alone = count_calls(monkeypatch, "run_alone")
    store.sql("insert into store (id, amount) select 'k' || n, 7 from generate_series(0, 999) as n")
    seen = {key: store.rows(key) for key in ("k1", "k3")}
    store.sql("update store set note = 'mine' where id = 'k3'")
    missing = [store.missing(seq, f"k{seq}", '{"amount": 1}', ("id", "amount")) for seq in range(4, 1004)]
    mismatched = [
        UpsertRow(seq=seq, key=key, key_columns=("id",), value='{"amount": 1}', columns=("id", "amount"), before=before)
        for seq, (key, before) in enumerate(seen.items())
    ]
    refused = store.apply(*mismatched, *missing).refused
    assert refused == {
        1: Refusal(RefusalCode.STALE, "the row of this key changed after the plan was made"),
        **dict.fromkeys(
            range(4, 1000), Refusal(RefusalCode.ARRIVED, "a row of this key appeared after the plan was made")
        ),
    }
    assert alone == []


def test_what_would_make_a_statement_too_large_is_split(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.sql(f"create table store ({PLAIN})")
    monkeypatch.setattr(halving, "_MANY_BYTES", 1000)
    together = count_calls(monkeypatch, "_run_together")
    items = [store.missing(seq, f"k{seq}", json.dumps({"note": "x" * 40}), ("id", "note")) for seq in range(64)]
    assert store.apply(*items).refused == {}
    assert {len(items) for _, items, _ in together} == {16}


def test_a_statement_that_takes_too_long_is_tried_with_fewer_rows(store: Store) -> None:
    store.sql(
        f"create table store ({PLAIN});"
        "create function slow() returns trigger language plpgsql as "
        "$$ begin perform pg_sleep(0.01); return new; end $$;"
        "create trigger slow before insert on store for each row execute function slow()"
    )
    store.connection = replace(store.connection, dsn=f"{store.connection.dsn}?options=-c%20statement_timeout%3D150")
    items = [store.missing(seq, f"k{seq}", '{"amount": 1}', ("id", "amount")) for seq in range(30)]
    assert store.apply(*items).refused == {}


def test_a_lock_that_is_not_free_is_no_rows_fault(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.sql(f"create table store ({PLAIN})")
    store.sql("insert into store (id, amount) select 'k' || n, 1 from generate_series(1, 20) as n")
    alone = count_calls(monkeypatch, "run_alone")
    monkeypatch.setattr(apply, "_PATIENCE_SECONDS", 1.0)
    items = [store.mismatched(seq, f"k{seq}", '{"amount": 2}', ("id", "amount")) for seq in range(1, 21)]
    with closing(psycopg2.connect(store.connection.dsn)) as other, other.cursor() as cursor:
        cursor.execute("select from store where id = 'k20' for share")
        with pytest.raises(TransientError, match="a lock was not free in time"):
            store.apply(*items)
    assert (store.effects(), alone) == ([], [])
    assert store.apply(*items).refused == {}


@pytest.fixture
def store(database: str) -> Store:
    return Store(database)


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[Any, ...]]:
    """The arguments of every call of a function of the module."""
    calls: list[tuple[Any, ...]] = []
    really = getattr(halving, name)

    def counting(*arguments: Any) -> Any:
        calls.append(arguments)
        return really(*arguments)

    monkeypatch.setattr(halving, name, counting)
    return calls
