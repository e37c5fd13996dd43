"""Test the effects beside a receipt: every row as it was and as it really came to be, exact for every type."""

from typing import Any

import pytest

from makewhole.model.errors import RefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.items import QuarantineRows
from tests.integration.postgres.store import PLAN, Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

COLUMNS = ("id", "amount", "note")


@pytest.fixture
def store(database: str) -> Store:
    made = Store(database)
    made.sql(
        "create table store (id text primary key, amount numeric(10,2), note text default 'new', seen timestamptz)"
    )
    return made


def test_inserts_updates_and_moves_leave_both_images(store: Store) -> None:
    store.sql("insert into store values ('b', 1, 'kept', '2013-01-01'), ('c', 1, null, 'infinity')")
    store.apply(
        store.missing(0, "a", '{"id": "a", "amount": 1.5}', ("id", "amount")),
        store.mismatched(1, "b", '{"id": "b", "amount": 2, "note": "a, b"}', COLUMNS),
        QuarantineRows(seq=2, key="c", survivor=None, extras=store.rows("c")),
    )
    assert store.effects() == [
        effect(2, EffectKind.MOVED, "(0,2)", "(c,1.00,,infinity)", None),
        effect(
            1,
            EffectKind.UPDATED,
            "(0,4)",
            '(b,1.00,kept,"2013-01-01 00:00:00+00")',
            '(b,2.00,"a, b","2013-01-01 00:00:00+00")',
        ),
        effect(0, EffectKind.INSERTED, "(0,3)", None, "(a,1.50,new,)"),
    ]


def test_a_row_that_was_moved_aside_names_the_one_that_stayed(store: Store) -> None:
    store.sql("alter table store drop constraint store_pkey; insert into store values ('c', 1), ('c', 1), ('c', 2)")
    survivor, *extras = store.rows("c")
    store.apply(QuarantineRows(seq=0, key="c", survivor=survivor, extras=tuple(extras)))
    assert store.effects() == [
        effect(0, EffectKind.MOVED, "(0,3)", "(c,2.00,new,)", "(c,1.00,new,)"),
        effect(0, EffectKind.MOVED, "(0,2)", "(c,1.00,new,)", "(c,1.00,new,)"),
    ]


def test_what_is_refused_has_no_effect(store: Store) -> None:
    store.sql("alter table store add check (amount < 100)")
    receipt = store.apply(
        store.missing(0, "a", '{"amount": 100}', COLUMNS[:2]), store.missing(1, "b", '{"amount": 99}', COLUMNS[:2])
    )
    assert list(receipt.refused) == [0]
    assert [written.seq for written in store.effects()] == [1]


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("new.note := 'by trigger'; return new", id="before"),
        pytest.param("update store set note = 'by trigger' where id = new.id; return null", id="after"),
    ],
)
def test_the_image_is_of_the_row_after_triggers(store: Store, what: str) -> None:
    store.sql("insert into store values ('b', 1)")
    when = "before" if "new;" in f"{what};" else "after"
    store.sql(
        f"create function mark() returns trigger language plpgsql as $$ begin {what}; end $$;"
        f"create trigger mark {when} insert or update on store for each row when (pg_trigger_depth() < 1) "
        "execute function mark()"
    )
    store.apply(
        store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]), store.mismatched(1, "b", '{"amount": 2}', COLUMNS[:2])
    )
    assert [(written.seq, written.after) for written in store.effects()] == [
        (1, '(b,2.00,"by trigger",)'),
        (0, '(a,1.00,"by trigger",)'),
    ]
    assert sorted(written.after or "" for written in store.effects()) == store.images()
    places = store.sql("select id, ctid::text from store order by id desc")
    assert [written.place for written in store.effects()] == [place for _, place in places]


def test_a_row_that_a_trigger_took_away_again_is_refused(store: Store) -> None:
    store.sql(
        "create function drop_it() returns trigger language plpgsql as "
        "$$ begin delete from store where id = new.id; return null; end $$;"
        "create trigger drop_it after insert on store for each row execute function drop_it()"
    )
    receipt = store.apply(store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]))
    assert receipt.refused == {
        0: Refusal(RefusalCode.STALE, "the table did not take the row (a trigger or a policy stopped it)")
    }


def test_rows_of_partitions_are_placed_in_them(database: str) -> None:
    store = Store(database, key=("year", "id"))
    store.sql(
        "create table store (year int, id text, n int) partition by list (year);"
        "create table store_2013 (n int, id text, year int);"
        "alter table store attach partition store_2013 for values in (2013);"
        "insert into store values (2013, 'a', 1)"
    )
    store.apply(store.mismatched(0, '["2013","a"]', '{"n": 2}', ("year", "id", "n")))
    assert store.effects() == [effect(0, EffectKind.UPDATED, "store_2013(0,2)", "(2013,a,1)", "(2013,a,2)")]


def test_a_schema_of_an_earlier_version_is_brought_up_to_date(store: Store) -> None:
    store.apply(store.missing(0, "a", '{"amount": 1}', COLUMNS[:2]), plan="older")
    store.sql("drop table makewhole.effect; drop index makewhole.quarantine_of_plan")
    store.apply(store.missing(0, "b", '{"amount": 1}', COLUMNS[:2]))
    assert [written.after for written in store.effects()] == ["(b,1.00,new,)"]
    with pytest.raises(
        RefusedError, match="chunk 0 of plan older at store has a receipt for 1 actions and the effects of 0"
    ):
        store.effects("older")


def test_a_deferred_constraint_refuses_its_row_and_not_the_chunk(store: Store) -> None:
    store.sql("alter table store add column part_of text references store deferrable initially deferred")
    receipt = store.apply(
        store.missing(0, "a", '{"part_of": "z"}', ("id", "part_of")),
        store.missing(1, "b", '{"amount": 1}', COLUMNS[:2]),
    )
    assert receipt.refused == {
        0: Refusal(
            RefusalCode.UNFIT,
            "the table does not take it: ForeignKeyViolation (23503): constraint store_part_of_fkey, table store",
        )
    }


def test_columns_may_have_any_name(database: str) -> None:
    store = Store(database, table="store", key=("t",))
    store.sql('create table store (t text, "wanted" int, "50%" int, "a ""b""" int default 7, "{i}" int)')
    store.sql("insert into store values ('k', 1, 2, 3, 4), ('m', 1, 2, 3, 4)")
    columns = ("t", "wanted", "50%", "{i}")
    store.apply(
        store.mismatched(0, "k", '{"wanted": 5, "50%": 6, "{i}": 7}', columns),
        store.missing(1, "n", '{"wanted": 5, "50%": 6, "{i}": 7}', columns),
        QuarantineRows(seq=2, key="m", survivor=None, extras=store.rows("m")),
    )
    assert store.images() == ["(k,5,6,3,7)", "(n,5,6,7,7)"]
    ((restore,),) = store.sql("select how_to_restore from makewhole.quarantine")
    store.sql(restore)
    store.sql(restore)
    assert store.images() == ["(k,5,6,3,7)", "(m,1,2,3,4)", "(n,5,6,7,7)"]


def effect(seq: int, kind: EffectKind, place: str, before: str | None, after: str | None) -> Effect:
    known: dict[str, Any] = {"plan": PLAN, "target": "store", "chunk": 0}
    return Effect(**known, seq=seq, kind=kind, place=place, before=before, after=after)
