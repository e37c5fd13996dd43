"""Test that an undo gives the table back row by row, exactly, and touches no row that was changed since."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.write import halving
from makewhole.tables.effects import EffectKind
from makewhole.tables.items import QuarantineRows, RestoreRow
from makewhole.tables.receipts import ReceiptRow
from tests.integration.postgres.store import PLAN, Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

UNDO = f"{PLAN}-undo"
COLUMNS = ("id", "amount", "note")
# Column, its type, a value that does not survive a way over JSON or another default, and another value as JSON.
TYPES: list[tuple[str, str, str, Any]] = [
    ("j", "json", """'{ "a":  1.50, "a": 2 }'""", {"b": 1}),
    ("jb", "jsonb", """'{"n": 1.50, "big": 12345678901234567890.123}'""", {"b": 1}),
    ("f", "double precision", "0.1::float8 + 0.2", 1.5),
    ("f0", "double precision", "'-0'", 1),
    ("nan", "double precision", "'NaN'", 1),
    ("r", "real", "'-Infinity'", 1.5),
    ("n", "numeric", "1.50", 1.5),
    ("n2", "numeric(12,4)", "99999999.1234", 2),
    ("nn", "numeric", "'NaN'", 2),
    ("b", "bytea", r"'\x00ff22'", "\\x01"),
    ("a", "int[]", "'[0:1]={1,NULL}'", [1]),
    ("ta", "text[]", r"""'{"a,b","\"","",NULL,"NULL"}'""", ["x"]),
    ("ts", "timestamptz", "'infinity'", "2013-01-01T00:00:00Z"),
    ("tn", "timestamp", "'-infinity'", "2013-01-01T00:00:00"),
    ("us", "timestamptz", "'2013-01-01 00:00:00.000001+00'", "2013-01-01T00:00:00Z"),
    ("d", "date", "'4713-01-01 BC'", "2013-01-01"),
    ("tz", "timetz", "'10:00:00+05:30'", "10:00:00Z"),
    ("i", "interval", "'1 month -1 day 00:00:00.5'", "1 day"),
    ("p", "pair", """row(1, 'a "b", (c)')""", {"a": 1, "b": "x"}),
    ("pa", "pair[]", "array[row(1, null)::pair, null]", [{"a": 1, "b": "x"}]),
    ("dm", "positive", "7", 1),
    ("e", "mood", "'so so'", "fine"),
    ("c", "char(5)", "'ab'", "x"),
    ("v", "varchar(5)", "'ab  '", "x"),
    ("t", "text", r"E'line\nbreak\ttab \\ \' \" , ()'", "x"),
    ("tx", "text", "''", "x"),
    ("bo", "boolean", "null", True),
    ("ip", "inet", "'10.0.0.1/8'", "::1"),
    ("bi", "bit(3)", "B'101'", "111"),
    ("g", "int4range", "'[1,5)'", "[2,3]"),
    ("u", "uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("x", "point", "'(0.1,-0)'", "(1,1)"),
    ("ty", "regtype", "'int'", "text"),
]


@pytest.fixture(params=[1, 1000], ids=["together", "one by one"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halving, "_FEW", request.param)


@pytest.fixture
def store(database: str) -> Store:
    made = Store(database)
    made.sql("create table store (id text primary key, amount numeric(10,2), note text default 'new')")
    return made


@pytest.fixture
def zoo(database: str) -> Store:
    """A table with a column of every kind, without a key."""
    made = Store(database)
    columns = ", ".join(f'"{name}" {kind}' for name, kind, _, _ in TYPES)
    made.sql(
        "create type pair as (a int, b text); create domain positive as int check (value > 0);"
        "create type mood as enum ('fine', 'so so');"
        "create table store (id text, gone int, number int generated always as identity, k int default 5, "
        f"{columns}, twice numeric generated always as (n * 2) stored); alter table store drop column gone"
    )
    return made


def test_every_type_comes_back_as_it_was(zoo: Store) -> None:
    names = ", ".join(f'"{name}"' for name, _, _, _ in TYPES)
    values = ", ".join(value for _, _, value, _ in TYPES)
    for key in ("a", "b", "b", "c", "d"):
        zoo.sql(f"insert into store (id, {names}) values ('{key}', {values})".replace("%", "%%"))
    zoo.sql("insert into store (id) values ('e')")
    before = zoo.images()
    value = json.dumps({name: other for name, _, _, other in TYPES})
    columns = ("id", *(name for name, _, _, _ in TYPES))
    survivor, *extras = zoo.rows("b")
    receipt = zoo.apply(
        zoo.mismatched(0, "a", value, columns),
        zoo.mismatched(1, "e", value, columns),
        zoo.missing(2, "f", value, columns),
        QuarantineRows(seq=3, key="b", survivor=survivor, extras=tuple(extras)),
        QuarantineRows(seq=4, key="c", survivor=None, extras=zoo.rows("c")),
    )
    assert receipt.refused == {}
    assert len(set(zoo.images()) & set(before)) == 2

    undone = undo(zoo, {0: "a", 1: "e", 2: "f", 3: "b", 4: "c"})

    assert (undone.actions, undone.refused) == (5, {})
    assert zoo.images() == before
    assert [effect.kind for effect in reversed(zoo.effects(UNDO))] == [
        EffectKind.INSERTED,
        EffectKind.INSERTED,
        EffectKind.DELETED,
        EffectKind.UPDATED,
        EffectKind.UPDATED,
    ]


def test_an_undo_can_be_undone(store: Store) -> None:
    store.sql("insert into store values ('b', 1), ('c', 1)")
    store.apply(
        store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]),
        store.mismatched(1, "b", '{"amount": 2}', COLUMNS[:2]),
        QuarantineRows(seq=2, key="c", survivor=None, extras=store.rows("c")),
    )
    after = store.images()
    undo(store, {0: "a", 1: "b", 2: "c"})
    undo(store, {0: "c", 1: "b", 2: "a"}, plan=UNDO, by="again")
    assert store.images() == after


def test_a_row_that_was_changed_or_erased_since_is_left_alone(store: Store) -> None:
    store.sql("insert into store values ('b', 1), ('d', 1)")
    store.apply(
        store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]),
        store.mismatched(1, "b", '{"amount": 2}', COLUMNS[:2]),
        store.missing(2, "c", '{"amount": 1}', COLUMNS[:2]),
        store.mismatched(3, "d", '{"amount": 2}', COLUMNS[:2]),
    )
    store.sql("update store set note = 'mine' where id in ('a', 'b'); delete from store where id in ('c', 'd')")
    receipt = undo(store, {0: "a", 1: "b", 2: "c", 3: "d"})
    changed, gone = (
        Refusal(RefusalCode.STALE, "the row was changed after the plan wrote it"),
        Refusal(RefusalCode.ERASED, "the row that the plan wrote is gone"),
    )
    assert refusals(receipt) == [gone, gone, changed, changed]
    assert store.images() == ["(a,1.00,mine)", "(b,2.00,mine)"]
    assert store.effects(UNDO) == []


def test_a_row_that_only_moved_is_known_by_its_content(store: Store) -> None:
    store.apply(store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]))
    store.sql("update store set amount = 7; update store set amount = 1")
    assert undo(store, {0: "a"}).refused == {}
    assert store.images() == []


def test_of_rows_that_are_alike_the_one_in_its_place_goes(store: Store) -> None:
    store.sql("alter table store drop constraint store_pkey")
    store.apply(store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]))
    store.sql("insert into store values ('a', 1, 'new')")
    undo(store, {0: "a"})
    assert store.sql("select ctid::text from store") == [("(0,2)",)]


def test_what_was_moved_aside_comes_back_only_to_what_stayed(store: Store) -> None:
    store.sql("alter table store drop constraint store_pkey")
    keys = dict(enumerate("abcdefg"))
    for key in keys.values():
        store.sql("insert into store values (%s, 1), (%s, 2)", key, key)
    items = []
    for seq, key in keys.items():
        survivor, *extras = store.rows(key)
        items.append(QuarantineRows(seq=seq, key=key, survivor=survivor, extras=tuple(extras)))
    store.apply(*items)
    store.sql("delete from store where id = 'a'; update store set amount = 7 where id = 'b'")
    store.sql("insert into store values ('c', 9); delete from makewhole.quarantine where row ->> 'id' = 'd'")
    ((restore,),) = store.sql("select how_to_restore from makewhole.quarantine where row ->> 'id' = 'e'")
    store.sql(restore)
    store.sql("update store set amount = 8 where id = 'g'; update store set amount = 1 where id = 'g'")
    assert refusals(undo(store, keys)) == [
        Refusal(RefusalCode.STALE, "the row was put back already"),
        Refusal(RefusalCode.ERASED, "the row is no longer in makewhole.quarantine"),
        Refusal(RefusalCode.STALE, "the rows of this key changed after the plan moved this one aside"),
        Refusal(RefusalCode.STALE, "the rows of this key changed after the plan moved this one aside"),
        Refusal(
            RefusalCode.ERASED,
            "the row of this key that stayed is gone; whoever removed it may have intended to remove this one too",
        ),
    ]
    assert [image for image in store.images() if image[1] in "efg"] == [
        "(e,1.00,new)",
        "(e,2.00,new)",
        "(f,1.00,new)",
        "(f,2.00,new)",
        "(g,1.00,new)",
        "(g,2.00,new)",
    ]
    assert (
        refusals(undo(store, keys, by="twice"))[:2] == [Refusal(RefusalCode.STALE, "the row was put back already")] * 2
    )


def test_an_unexpected_row_does_not_come_back_beside_one_that_appeared(store: Store) -> None:
    store.sql("insert into store values ('a', 1)")
    store.apply(QuarantineRows(seq=0, key="a", survivor=None, extras=store.rows("a")))
    store.sql("insert into store values ('a', 2)")
    assert refusals(undo(store, {0: "a"})) == [
        Refusal(RefusalCode.STALE, "the rows of this key changed after the plan moved this one aside")
    ]


def test_a_row_does_not_come_back_beside_one_that_appeared_and_equals_the_one_that_stayed(store: Store) -> None:
    store.sql("alter table store drop constraint store_pkey; insert into store values ('a', 1), ('a', 1)")
    survivor, *extras = store.rows("a")
    store.apply(QuarantineRows(seq=0, key="a", survivor=survivor, extras=tuple(extras)))
    store.sql("insert into store values ('a', 1)")
    assert refusals(undo(store, {0: "a"})) == [
        Refusal(RefusalCode.STALE, "the rows of this key changed after the plan moved this one aside")
    ]


def test_several_rows_of_one_action_come_back(store: Store) -> None:
    store.sql("alter table store drop constraint store_pkey; insert into store values ('a', 1), ('a', 1), ('a', 2)")
    store.sql("insert into store values ('b', 1), ('b', 1), ('b', 1)")
    before = store.images()
    survivor, *extras = store.rows("b")
    store.apply(
        QuarantineRows(seq=0, key="a", survivor=None, extras=store.rows("a")),
        QuarantineRows(seq=1, key="b", survivor=survivor, extras=tuple(extras)),
    )
    assert store.images() == ["(b,1.00,new)"]
    assert undo(store, {0: "a", 1: "b"}).refused == {}
    assert store.images() == before


def test_later_chunks_are_taken_back_first(store: Store) -> None:
    store.sql("insert into store values ('a', 1)")
    store.apply(store.mismatched(0, "a", '{"amount": 2}', COLUMNS[:2]), chunk=0)
    store.apply(store.mismatched(1, "a", '{"amount": 3}', COLUMNS[:2]), chunk=1)
    assert [effect.seq for effect in store.effects()] == [1, 0]
    assert undo(store, {0: "a", 1: "a"}).refused == {}
    assert store.images() == ["(a,1.00,new)"]


def test_deleting_reaches_into_no_other_table(store: Store) -> None:
    store.apply(store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]))
    store.sql("create table bags (id text references store on delete cascade); insert into bags values ('a')")
    assert refusals(undo(store, {0: "a"})) == [
        Refusal(
            RefusalCode.UNFIT,
            "rows of public.store cannot be deleted: that also changes other tables through bags_id_fkey",
        )
    ]
    store.sql("alter table bags drop constraint bags_id_fkey, add foreign key (id) references store")
    assert refusals(undo(store, {0: "a"}, chunk=1)) == [
        Refusal(
            RefusalCode.UNFIT,
            "the table does not take it: ForeignKeyViolation (23503): constraint bags_id_fkey, table bags",
        )
    ]


def test_a_table_that_makes_another_row_of_it_is_reported(store: Store) -> None:
    store.sql("insert into store values ('b', 1)")
    store.apply(
        store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]), store.mismatched(1, "b", '{"amount": 2}', COLUMNS[:2])
    )
    store.sql(
        "create function keep() returns trigger language plpgsql as $$ begin "
        "if tg_op = 'DELETE' then return null; end if; new.note := 'stamped'; return new; end $$;"
        "create trigger keep before update or delete on store for each row execute function keep()"
    )
    assert refusals(undo(store, {0: "a", 1: "b"})) == [
        Refusal(
            RefusalCode.UNFIT,
            "the table makes another row of it than there was (a trigger or a generated column changes it); "
            "restore this one by hand",
        ),
        Refusal(RefusalCode.STALE, "the table did not let the row go (a trigger or a policy kept it)"),
    ]


def test_a_table_that_got_another_column_is_reported(store: Store) -> None:
    store.apply(store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]))
    store.sql("alter table store add column more int")
    assert refusals(undo(store, {0: "a"})) == [
        Refusal(RefusalCode.UNFIT, "the table has other columns than when the plan wrote the row")
    ]


OTHER_COLUMNS = [Refusal(RefusalCode.UNFIT, "the table has other columns than when the plan wrote the row")]


@pytest.mark.parametrize("other", ["memo", "note"])
def test_no_value_comes_back_into_another_column(store: Store, other: str) -> None:
    """The table has as many columns as when the row was moved aside, and each takes the value in its place."""
    store.sql("alter table store add column mark text; insert into store values ('a', 1, 'note', 'mark')")
    store.apply(QuarantineRows(seq=0, key="a", survivor=None, extras=store.rows("a")))
    store.sql(f"alter table store drop column note, add column {other} text")

    assert refusals(undo(store, {0: "a"})) == [
        Refusal(RefusalCode.UNFIT, "the table has other columns than when the plan wrote the row")
    ]

    assert store.images() == []
    assert store.sql("select restored_at from makewhole.quarantine") == [(None,)]


@pytest.mark.parametrize("is_other_place", [True, False])
def test_by_hand_no_value_comes_back_into_another_column(store: Store, is_other_place: bool) -> None:
    """The session of a person may have other settings than that which moved the row aside."""
    store.sql("alter table store add column mark text, add column at timestamptz")
    store.sql("insert into store values ('a', 1, 'note', 'mark', '2026-01-01 00:00:00+00')")
    before = store.images()
    store.apply(QuarantineRows(seq=0, key="a", survivor=None, extras=store.rows("a")))
    if is_other_place:
        store.sql("alter table store drop note, drop at, add note text, add at timestamptz")
    ((restore,),) = store.sql("select how_to_restore from makewhole.quarantine")

    store.sql(f"set timezone = 'Asia/Tokyo'; {restore}")

    assert store.images() == ([] if is_other_place else before)


def undo(store: Store, keys: Mapping[int, str], *, plan: str = PLAN, by: str = UNDO, chunk: int = 0) -> ReceiptRow:
    """Everything that the plan did, by a plan of its own; `keys` are those of the plan's actions."""
    restored = [
        RestoreRow(seq=seq, key=keys[effect.seq], effect=effect) for seq, effect in enumerate(store.effects(plan))
    ]
    return store.apply(*restored, plan=by, chunk=chunk)


def refusals(receipt: ReceiptRow) -> list[Refusal]:
    """Return why not, in the order of the actions."""
    return [refusal for _, refusal in sorted(receipt.refused.items(), key=lambda item: item[0])]
