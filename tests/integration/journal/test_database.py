"""Test migrations, the schema that they add up to, and what PostgreSQL itself refuses."""

import hashlib
import json
import shutil
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg2
import pytest

from makewhole.journal import database as database_module
from makewhole.journal import windows
from makewhole.journal.database import connect, migrate
from makewhole.journal.windows import OlderOpen
from makewhole.model.errors import CorruptionError, RefusedError, TransientError
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import sql_root

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[3]
MIGRATIONS = [path.stem for path in sorted((CHECKOUT / "sql" / "migrations").glob("*.sql"))]
CATALOG = """
select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null'
       else '' end || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || a.attidentity::text
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'makewhole'::regnamespace and c.relkind in ('r', 'v', 'p')
union all
select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
from pg_constraint where connamespace = 'makewhole'::regnamespace
union all
select 'index', tablename, indexname, indexdef from pg_indexes where schemaname = 'makewhole'
union all
select 'function', proname, proname, pg_get_functiondef(oid) from pg_proc where pronamespace = 'makewhole'::regnamespace
union all
select 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(t.oid)
from pg_trigger t join pg_class c on c.oid = tgrelid
where not tgisinternal and c.relnamespace = 'makewhole'::regnamespace
order by 1, 2, 3
"""


def catalog(dsn: str) -> list[tuple[str, ...]]:
    with connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(CATALOG)
        return cursor.fetchall()


def test_all_migrations_together_give_the_schema_that_people_read(journal: str, database: str) -> None:
    with connect(database) as connection, connection.cursor() as cursor:
        cursor.execute((CHECKOUT / "sql" / "schema.sql").read_text(encoding="utf-8"))

    assert catalog(database) == catalog(journal)
    assert len(catalog(journal)) > 100


def test_migrating_twice_is_harmless(database: str) -> None:
    assert migrate(database) == MIGRATIONS
    before = catalog(database)

    assert migrate(database) == []
    assert catalog(database) == before


def test_processes_that_migrate_at_once_wait_for_each_other(database: str) -> None:
    applied: list[list[str]] = []
    threads = [threading.Thread(target=lambda: applied.append(migrate(database))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(applied, key=len) == [[], [], [], MIGRATIONS]


def test_an_edited_migration_is_refused(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(database)
    shutil.copytree(sql_root(), tmp_path / "sql")
    edited = tmp_path / "sql" / "migrations" / f"{MIGRATIONS[0]}.sql"
    edited.write_text(edited.read_text() + "\n-- a word more\n")
    monkeypatch.setattr(database_module, "sql_root", lambda: tmp_path / "sql")

    with pytest.raises(CorruptionError) as raised:
        migrate(database)

    assert str(raised.value) == (
        f"migration {MIGRATIONS[0]}.sql was edited after this journal applied it; restore the file and put the change "
        "into a new migration"
    )


def test_a_migration_that_fails_leaves_nothing_behind(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sql_root(), tmp_path / "sql")
    (tmp_path / "sql" / "migrations" / "9999_broken.sql").write_text("create table makewhole.half (n int); select 1/0;")
    monkeypatch.setattr(database_module, "sql_root", lambda: tmp_path / "sql")

    with pytest.raises(psycopg2.Error):
        migrate(database)

    monkeypatch.undo()
    assert migrate(database) == MIGRATIONS


def test_a_journal_that_does_not_answer_says_what_to_check() -> None:
    with (
        pytest.raises(TransientError, match="the journal's PostgreSQL does not answer; check that it runs"),
        connect("postgresql://nobody@127.0.0.1:1/none"),
    ):
        pass


# Windows that PostgreSQL itself keeps apart


def window(number: int, *ranges: tuple[int, int, int], topic_id: str = "id1", revision: int = 1) -> Window:
    start = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=number)
    return Window(
        pipeline="demo",
        number=number,
        revision=revision,
        start=start,
        end=start + timedelta(days=1),
        opened_at=start,
        ranges={
            "flights": tuple(
                PartitionRange(topic="flights", topic_id=topic_id, partition=partition, lo=lo, hi=hi)
                for partition, lo, hi in ranges
            )
        },
    )


def insert(journal: str, opened: Window) -> None:
    with connect(journal) as session:
        request = f"run-{opened.number}-{opened.revision}"
        windows.insert(session, opened, request=request, plan_only=False, configuration={})


def test_windows_that_touch_are_kept_with_their_ranges(journal: str) -> None:
    insert(journal, window(1, (0, 0, 10), (1, 5, 5)))
    insert(journal, window(2, (0, 10, 10), (1, 5, 9)))
    insert(journal, window(3, (0, 10, 20), (1, 9, 9), (2, 0, 4)))
    insert(journal, window(3, revision=2))

    with connect(journal) as session:
        loaded = windows.load(session, "demo", 3, 2)
        history = windows.covered_ranges(session, "demo", "flights")

    assert loaded.ranges == window(3, (0, 10, 20), (1, 9, 9), (2, 0, 4)).ranges
    assert {partition: [(part.lo, part.hi) for part in parts] for partition, parts in history.items()} == {
        0: [(0, 10), (10, 20)],
        1: [(5, 5), (9, 9)],
        2: [(0, 4)],
    }


@pytest.mark.parametrize(("lo", "hi"), [(9, 11), (0, 10), (3, 4), (0, 100)])
def test_overlapping_windows_are_refused_by_postgresql_itself(journal: str, lo: int, hi: int) -> None:
    insert(journal, window(1, (0, 0, 10)))

    with pytest.raises(RefusedError) as raised:
        insert(journal, window(2, (0, lo, hi)))

    assert str(raised.value) == (
        f"demo window 2 (revision 1): offsets [{lo}, {hi}) of flights/0 belong to another window already; windows "
        "never overlap. Look at `makewhole windows` and choose an interval after the last one"
    )
    with connect(journal) as session:
        assert [bounds.number for bounds in windows.bounds_near(session, "demo", window(1).end)] == [1]


def test_the_same_offsets_of_another_incarnation_are_other_records(journal: str) -> None:
    insert(journal, window(1, (0, 0, 10), (1, 0, 9)))
    insert(journal, window(2, (0, 0, 10), topic_id="id2"))

    with connect(journal) as session:
        history = windows.covered_ranges(session, "demo", "flights")

    assert history == {0: list(window(2, (0, 0, 10), topic_id="id2").ranges["flights"])}


def test_the_same_offsets_of_another_lineage_are_other_records(journal: str) -> None:
    insert(journal, window(1, (0, 0, 10)))
    truncated = window(2)
    again = PartitionRange(
        topic="flights", topic_id="id1", partition=0, lo=7, hi=12, lineage=1, leader_epochs=((0, 7), (3, 12))
    )
    insert(journal, replace(truncated, ranges={"flights": (again,)}))

    with connect(journal) as session:
        history = windows.covered_ranges(session, "demo", "flights")
        loaded = windows.ranges(session, "demo", 2)

    assert history == {0: [*window(1, (0, 0, 10)).ranges["flights"], again]}
    assert history[0][1].leader_epochs == loaded["flights"][0].leader_epochs == ((0, 7), (3, 12))
    with pytest.raises(RefusedError, match=r"\[11, 20\) of flights/0 belong to another window"):
        insert(journal, replace(window(3), ranges={"flights": (replace(again, lo=11, hi=20),)}))


# A journal that was there before


def test_a_journal_with_data_is_brought_up_to_date_with_all_it_holds(database: str) -> None:
    first = (CHECKOUT / "sql" / "migrations" / "0001_init.sql").read_text(encoding="utf-8")
    digest = hashlib.sha256(first.encode()).hexdigest()
    manifest = {"leader_epochs": {"0": [[0, 0, 6], [2, 6, 10]]}}
    older = {"leader_epochs": {"0": [[0, 0, 10]]}}
    with connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(first)
        cursor.execute("insert into makewhole.migration (version, name, sha256) values (1, '0001_init', %s)", (digest,))
        for revision, kept in ((1, older), (2, manifest)):
            cursor.execute(
                "insert into makewhole.window (pipeline, number, revision, end_time, request, configuration) "
                "values ('demo', 1, %s, '2013-01-02', %s, '{}')",
                (revision, f"run-{revision}"),
            )
            cursor.execute(
                "insert into makewhole.snapshot (pipeline, number, revision, point, manifest) "
                "values ('demo', 1, %s, 'flights', %s)",
                (revision, json.dumps(kept)),
            )
        cursor.execute("update makewhole.window set state = 'gaps' where revision = 1")
        for partition in (0, 1):
            cursor.execute(
                "with made as (insert into makewhole.lane (pipeline, point, topic, topic_id, partition) "
                "values ('demo', 'flights', 'flights', 'id1', %s) returning id) "
                "insert into makewhole.window_range (pipeline, number, lane, offsets, lo, hi) "
                "select 'demo', 1, id, '[0,10)', 0, 10 from made",
                (partition,),
            )

    assert migrate(database) == MIGRATIONS[1:]

    with connect(database) as session:
        (there,) = windows.covered_ranges(session, "demo", "flights")[0]
        assert (there.lo, there.hi, there.lineage, there.leader_epochs) == (0, 10, 0, ((0, 6), (2, 10)))
        assert windows.covered_ranges(session, "demo", "flights")[1][0].leader_epochs == ()
        assert windows.older_open(session, "demo", 2) == OlderOpen(windows=1, first_window=1)
    insert(database, window(2, (0, 10, 20), (1, 10, 12)))


def test_plans_of_an_earlier_version_keep_what_they_did_and_end(database: str) -> None:
    early = [path for path in sorted((CHECKOUT / "sql" / "migrations").glob("*.sql")) if path.name < "0004"]
    with connect(database) as connection, connection.cursor() as cursor:
        for path in early:
            text = path.read_text(encoding="utf-8")
            cursor.execute(text)
            cursor.execute(
                "insert into makewhole.migration (version, name, sha256) values (%s, %s, %s)",
                (int(path.name[:4]), path.stem, hashlib.sha256(text.encode()).hexdigest()),
            )
        for number, state in enumerate(("done", "running", "refused"), start=1):
            cursor.execute(
                "insert into makewhole.window (pipeline, number, revision, end_time, request, configuration) "
                "values ('demo', %s, 1, '2013-01-02', %s, '{}')",
                (number, f"run-{number}"),
            )
            cursor.execute(
                "insert into makewhole.plan (id, pipeline, number, revision, sha256, counts, state, reason) "
                "values (%s, 'demo', %s, 1, 'f', '{}', %s, 'as it was')",
                (f"demo-{number}", number, state),
            )
        outcomes = ["done", "refused", "done", "done", None]
        for seq, outcome in enumerate(outcomes):
            cursor.execute(
                "insert into makewhole.action "
                "(plan, seq, remedy, hop, target, key, key_hash, before, outcome, outcome_reason) "
                "values ('demo-2', %s, 'redeliver', 'a→b', 'a', %s, 'f', '{\"b\": 1, \"a\": 2}', %s, %s)",
                (seq, f"K{seq}", outcome, "stale" if outcome == "refused" else None),
            )
        for chunk, actions in enumerate((1, 2)):
            cursor.execute(
                "insert into makewhole.chunk (plan, target, chunk, actions, place) values ('demo-2', 'a', %s, %s, '')",
                (chunk, actions),
            )

    assert migrate(database) == MIGRATIONS[len(early) :]

    with connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("select seq, chunk, key, before, outcome, outcome_reason from makewhole.action order by seq")
        assert cursor.fetchall() == [
            (0, 0, "K0", '{"a": 2, "b": 1}', "done", None),
            (1, 2, "K1", '{"a": 2, "b": 1}', "refused", "stale"),
            (2, 1, "K2", '{"a": 2, "b": 1}', "done", None),
            (3, 1, "K3", '{"a": 2, "b": 1}', "done", None),
            (4, 2, "K4", '{"a": 2, "b": 1}', None, None),
        ]
        cursor.execute("select id, state, reason from makewhole.plan order by id")
        ended = "frozen by an earlier version of makewhole; open a new revision of the window"
        assert cursor.fetchall() == [
            ("demo-1", "done", "as it was"),
            ("demo-2", "rejected", ended),
            ("demo-3", "refused", "as it was"),
        ]


def test_a_request_opens_one_revision_only(journal: str) -> None:
    insert(journal, window(1, (0, 0, 10)))

    with pytest.raises(psycopg2.errors.UniqueViolation):
        insert(journal, window(1))
