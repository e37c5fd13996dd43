"""Test migrations, and what PostgreSQL itself refuses."""

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
from makewhole.journal.results import hop_results
from makewhole.model.errors import CorruptionError, RefusedError, TransientError
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection, sql_root

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
        connect("postgresql://absent@127.0.0.1:1/none"),
    ):
        pass


# Processes that stand still


def idle_limit(session: PgConnection) -> str:
    with session.cursor() as cursor:
        cursor.execute("select current_setting('idle_in_transaction_session_timeout')")
        [(limit,)] = cursor.fetchall()
    return str(limit)


def test_who_stands_still_with_the_lock_of_a_pipeline_or_of_results_does_not_keep_it(journal: str) -> None:
    insert(journal, window(1))
    with connect(journal) as session:
        windows.lock_pipeline(session, "demo")
        assert idle_limit(session) == "20min"
        session.commit()
        assert idle_limit(session) == "0"
        hop_results.lock_results(session, window(1))
        assert idle_limit(session) == "20min"
    with database_module.transaction(journal, idle_seconds=3) as session:
        windows.lock_pipeline(session, "demo")
        assert idle_limit(session) == "3s"


def test_a_lock_goes_on_when_the_server_ended_who_stood_still(journal: str) -> None:
    with pytest.raises(TransientError), connect(journal) as stands_still:
        with stands_still.cursor() as cursor:
            cursor.execute("set idle_in_transaction_session_timeout = '200ms'")
        stands_still.commit()
        windows.lock_pipeline(stands_still, "demo")
        with connect(journal) as another:
            windows.lock_pipeline(another, "demo")
        windows.lock_pipeline(stands_still, "demo")


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


def test_a_request_opens_one_revision_only(journal: str) -> None:
    insert(journal, window(1, (0, 0, 10)))

    with pytest.raises(psycopg2.errors.UniqueViolation):
        insert(journal, window(1))
