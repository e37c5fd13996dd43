"""Test reading a table while people write to it."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import polars as pl
import pytest

from makewhole.compute.row_filter import typed_term
from makewhole.model.errors import ConfigurationError, PermanentError, TransientError
from makewhole.postgres.read import export_parts, key_conditions
from makewhole.postgres.read.export import ExportReader
from makewhole.postgres.read.export_parts import ExportPart
from makewhole.postgres.read.visibility import current_snapshot, keys_not_visible
from makewhole.tables.shape import EarlierRows, TimeBounds
from tests.integration.postgres.people import People, planned

pytestmark = pytest.mark.integration


def day(number: int) -> datetime:
    return datetime(2013, 1, number, tzinfo=UTC)


@pytest.fixture
def many(people: People) -> People:
    """10,000 rows over a few hundred pages."""
    people.sql(
        "create table rows (id int primary key, x int, pad text) with (fillfactor = 100);"
        "insert into rows select n, 0, repeat('p', 200) from generate_series(0, 9999) n"
    )
    return people


def test_all_parts_see_one_moment_while_rows_move_across_their_bounds(
    many: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update writes a new version behind the last page: each reader alone would see rows twice, or not at all."""
    monkeypatch.setattr(export_parts, "_PAGES_PER_PART", 16)
    shape = many.shape(compare={"x": "int"})
    with planned(many.connection, shape, None, 4) as plan:
        reader = ExportReader(many.connection, shape, plan.view)
        frames = []
        for number, part in enumerate(plan.parts):
            many.sql(f"update rows set x = x + 1 where id % 4 = {number % 4}")
            many.sql(f"delete from rows where id between {number * 100} and {number * 100 + 9}")
            frames += list(reader.part(None, part))

    rows = pl.concat(frames)
    assert len(plan.parts) == 4
    assert sorted(rows["key"], key=int) == [str(number) for number in range(10_000)]
    assert rows["c:x"].unique().to_list() == ["0"]
    assert reader.counted == 10_000


def test_an_empty_table_gives_no_rows(people: People) -> None:
    people.sql("create table rows (id int)")

    assert people.read(people.shape()).is_empty()


def test_rows_of_different_partitions_have_different_places(people: People) -> None:
    """Every partition counts its pages from 0: two rows at `(0,1)` are two rows."""
    people.sql(
        "create table rows (id int, d int) partition by list (d);"
        "create table rows_1 partition of rows for values in (1);"
        "create table rows_2 partition of rows for values in (2);"
        "insert into rows values (7, 1), (7, 2), (8, 1)"
    )

    rows = people.read(people.shape()).sort("place")

    assert rows.select("key", "place").rows() == [("7", "rows_1(0,1)"), ("8", "rows_1(0,2)"), ("7", "rows_2(0,1)")]


def test_the_place_in_a_plain_table_is_its_ctid(people: People) -> None:
    people.sql('create schema "Ops"; create table "Ops"."Rows" (id int); insert into "Ops"."Rows" values (1)')

    assert people.read(people.shape(table="Ops.Rows"))["place"].to_list() == ["(0,1)"]


# Time


@pytest.fixture
def timed(people: People) -> People:
    people.sql("create table rows (id text, at timestamptz)")
    return people


def keys(frame: pl.DataFrame) -> list[str]:
    return sorted(frame["key"].to_list()) if len(frame) else []


def test_bounds_are_half_open_in_utc_whatever_the_server_thinks(timed: People) -> None:
    timed.sql("alter table rows alter at type timestamp using at at time zone 'UTC'")
    timed.sql(
        "insert into rows values ('before', '2013-01-01 23:59:59.999999'), ('first', '2013-01-02'), "
        "('last', '2013-01-02 23:59:59.999999'), ('after', '2013-01-03')"
    )
    name = timed.sql("select current_database()")[0][0]
    timed.sql(f"alter database {name} set timezone = 'Asia/Tokyo'")

    assert keys(timed.read(timed.shape(time="at"), TimeBounds(start=day(2), end=day(3)))) == ["first", "last"]
    assert keys(timed.read(timed.shape(time="at"), TimeBounds(start=None, end=day(2)))) == ["before"]


def next_day(before: str) -> TimeBounds:
    """Return the bounds of day 2, with what came late on day 1 since a snapshot."""
    late = EarlierRows(start=day(1), end=day(2), seen_before=before)
    return TimeBounds(start=day(2), end=day(3), seen_before=before, earlier=(late,))


def windows(timed: People, between: Callable[[], object]) -> tuple[list[str], list[str]]:
    """The keys of two windows, day 1 and day 2; `between` runs after the first was read."""
    shape = timed.shape(time="at")
    first = TimeBounds(start=day(1), end=day(2))
    with planned(timed.connection, shape, first, 1) as plan:
        reader = ExportReader(timed.connection, shape, plan.view)
        frames = [frame for part in plan.parts for frame in reader.part(first, part)]
    between()
    two = timed.read(shape, next_day(plan.seen))
    return keys(pl.concat(frames)) if frames else [], keys(two)


def test_a_row_that_was_committed_late_falls_into_the_next_window_once(timed: People) -> None:
    timed.sql("insert into rows values ('early', '2013-01-01 10:00')")
    with ExitStack() as stack:
        slow = timed.session(stack)
        slow.cursor().execute("insert into rows values ('late', '2013-01-01 11:00')")

        def between() -> None:
            slow.commit()
            timed.sql("insert into rows values ('second', '2013-01-02 10:00'), ('backdated', '2013-01-01 12:00')")

        early, two = windows(timed, between)

    assert early == ["early"]
    assert two == ["backdated", "late", "second"]
    now = current_snapshot(timed.connection)
    late = EarlierRows(start=None, end=day(3), seen_before=now)
    again = TimeBounds(start=day(3), end=day(4), seen_before=now, earlier=(late,))
    assert keys(timed.read(timed.shape(time="at"), again)) == []


def test_a_late_row_that_was_written_after_a_savepoint_is_not_lost(timed: People) -> None:
    """Its id is that of a subtransaction, which no snapshot lists: `pg_visible_in_snapshot` takes it for seen."""
    timed.sql("insert into rows values ('early', '2013-01-01 10:00')")
    with ExitStack() as stack:
        slow = timed.session(stack)
        cursor = slow.cursor()
        cursor.execute("insert into rows values ('outer', '2013-01-01 11:00')")
        cursor.execute("savepoint s")
        cursor.execute("insert into rows values ('inner', '2013-01-01 11:00')")
        timed.sql("insert into rows values ('other', '2013-01-05')")

        early, two = windows(timed, slow.commit)

    assert early == ["early"]
    assert two == ["inner", "outer"]


def test_a_row_without_a_time_belongs_to_the_window_that_first_sees_it(timed: People) -> None:
    timed.sql("insert into rows values ('early', '2013-01-01 10:00')")

    early, two = windows(timed, lambda: timed.sql("insert into rows values ('untimed', null)"))

    assert (early, two) == (["early"], ["untimed"])
    assert keys(timed.read(timed.shape(time="at"), TimeBounds(start=None, end=day(2)))) == ["early", "untimed"]


def test_rows_of_an_earlier_time_are_all_read_where_no_snapshot_says_which_are_new(timed: People) -> None:
    timed.sql("insert into rows values ('older', '2013-01-01'), ('old', '2013-01-02'), ('own', '2013-01-03')")

    bounds = TimeBounds(start=day(3), end=day(4), earlier=(EarlierRows(start=day(2), end=day(3), seen_before=None),))

    assert keys(timed.read(timed.shape(time="at"), bounds)) == ["old", "own"]


def test_a_ledger_row_is_young_until_it_was_certainly_there(timed: People) -> None:
    shape = timed.shape(time="at")
    timed.sql("insert into rows values ('old', '2013-01-01')")
    with ExitStack() as stack:
        slow = timed.session(stack)
        cursor = slow.cursor()
        cursor.execute("insert into rows values ('open', '2013-01-01')")
        cursor.execute("savepoint s")
        cursor.execute("insert into rows values ('nested', '2013-01-01')")
        timed.sql("insert into rows values ('beside', '2013-01-01')")
        seen = current_snapshot(timed.connection)
        slow.commit()
    timed.sql("insert into rows values ('new', '2013-01-01')")
    asked = ["old", "open", "nested", "new", "nowhere"]

    assert keys_not_visible(timed.connection, shape, asked, seen) == ["open", "nested", "new", "nowhere"]
    assert keys_not_visible(timed.connection, shape, asked, current_snapshot(timed.connection)) == ["nowhere"]
    assert keys_not_visible(timed.connection, shape, asked, "1:1:") == asked


def test_a_ledger_key_is_young_while_a_version_before_the_end_is(timed: People) -> None:
    shape = timed.shape(time="at")
    timed.sql(
        "insert into rows select name, '2013-01-01' from unnest(array['own', 'late', 'none', 'ever', 'old']) name"
    )
    seen = current_snapshot(timed.connection)
    timed.sql(
        "insert into rows values ('own', '2013-01-01 12:00'), ('late', '2013-01-02'), ('none', null), "
        "('ever', 'infinity'), ('new', '2013-01-02')"
    )
    asked = ["own", "late", "none", "ever", "old", "new"]

    assert keys_not_visible(timed.connection, shape, asked, seen) == ["new"]
    assert keys_not_visible(timed.connection, shape, asked, seen, day(2)) == ["own", "none", "ever", "new"]
    assert keys_not_visible(timed.connection, timed.shape(), asked, seen, day(2)) == [
        "own",
        "late",
        "none",
        "ever",
        "new",
    ]


# Look-ups by key

HOSTILE = [
    "a'b",
    'a"b',
    "a\\b",
    "a\nb",
    "a,b",
    "a\r",
    "{a}",
    "%s",
    "'; drop table rows; --",
    "null",
    "NULL",
    "ü",
    " a ",
    "$1",
]


@pytest.mark.parametrize("column", ["text", "varchar", "varchar(40)"])
def test_hostile_texts_are_found_and_only_they(people: People, column: str) -> None:
    people.sql(f"create table rows (id {column})")
    for key in [*HOSTILE, "other", "A'B"]:
        people.sql("insert into rows values (%s)", key)

    assert people.look_up(people.shape(), [*HOSTILE, "", "nowhere"]) == sorted(HOSTILE)


@pytest.mark.parametrize("column", ["smallint", "integer", "bigint"])
def test_an_integer_key_is_found_by_its_own_text_only(people: People, column: str) -> None:
    """`007` is another key than `7`: its row must not come up where 007 is judged."""
    people.sql(f"create table rows (id {column}); insert into rows values (7), (0), (-7)")
    odd = ["007", "-0", "+7", " 7", "7.0", "--7", "-", "", "x", "٧", "9" * 30, "-9223372036854775809", "1e1"]

    assert people.look_up(people.shape(), ["7", "-7", "0", *odd]) == ["-7", "0", "7"]
    assert people.look_up(people.shape(), odd) == []


def test_the_greatest_integers_are_found(people: People) -> None:
    people.sql("create table rows (id bigint)")
    keys = ["1234567890123456789", "9223372036854775807", "-9223372036854775808"]
    for key in keys:
        people.sql("insert into rows values (%s)", int(key))

    assert people.look_up(people.shape(), keys) == sorted(keys)


def test_a_uuid_is_found_by_postgresqls_own_spelling_only(people: People) -> None:
    known = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
    people.sql("create table rows (id uuid)")
    people.sql("insert into rows values (%s)", known)

    assert people.look_up(people.shape(), [known, "nonsense", "a'b"]) == [known]
    assert people.look_up(people.shape(), [known.upper(), known.replace("-", "")]) == []


def test_composite_keys_are_found_by_their_text(people: People) -> None:
    people.sql("create table rows (a text, b int); insert into rows values ('x\"y', 1), ('x', 2), ('x', null)")
    shape = people.shape(key=("a", "b"))

    assert people.look_up(shape, ['["x\\"y","1"]', '["x","2"]', '["x",null]', "x"]) == ['["x","2"]', '["x\\"y","1"]']


def test_no_keys_ask_nothing(people: People) -> None:
    assert people.look_up(people.shape(table="not_there"), []) == []


def test_more_keys_than_one_statement_takes_are_all_found(many: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_conditions, "_KEYS_PER_STATEMENT", 1_000)

    assert len(many.look_up(many.shape(), [str(number) for number in range(12_000)])) == 10_000


# Filters


def test_rows_name_the_hops_whose_filter_they_do_not_pass(people: People) -> None:
    people.sql(
        "create table rows (id int, cancelled boolean, carrier text, n numeric);"
        "insert into rows values (1, false, 'UA', 1.10), (2, true, 'UA', 1.104), (3, null, 'O''H', null)"
    )
    filters = {
        "a→b": (typed_term("cancelled", False), typed_term("carrier", "UA")),
        "a→c": (typed_term("carrier", "O'H"),),
        "a→d": (typed_term("n", 1),),
    }

    rows = people.read(people.shape(filters=filters)).sort("key")

    assert rows["excluded_by"].to_list() == ["a→c,a→d", "a→b,a→c,a→d", "a→b,a→d"]


# What is wrong, in words


def test_a_table_that_does_not_exist_is_named(people: People) -> None:
    with (
        pytest.raises(ConfigurationError) as raised,
        planned(people.connection, people.shape("ops.none"), None, 1),
    ):
        pass

    assert str(raised.value) == "pipeline file: points.rows.table: table ops.none does not exist. Correct its name"


def test_every_column_that_does_not_exist_is_named_with_what_there_is(people: People) -> None:
    people.sql("create table rows (id int, b int, gone int); alter table rows drop column gone")
    shape = people.shape(key=("id", "gone"), compare={"x": "int"}, time="at")

    with pytest.raises(ConfigurationError) as raised, planned(people.connection, shape, None, 1):
        pass

    assert str(raised.value).splitlines() == [
        f"pipeline file: points.rows.{name}: rows has no column {name}. It has: b, id" for name in ("at", "gone", "x")
    ]


def test_a_column_dropped_during_the_run_is_an_error_and_not_a_loss(people: People) -> None:
    people.sql("create table rows (id int, x int); insert into rows values (1, 1)")
    shape = people.shape(compare={"x": "int"})
    with planned(people.connection, shape, None, 1) as plan:
        pass
    people.sql("alter table rows drop column x")

    with pytest.raises(PermanentError, match="rows has no column x"):
        list(ExportReader(people.connection, shape, None).part(None, plan.parts[0]))


def test_a_view_of_the_data_that_is_gone_is_read_again(people: People) -> None:
    people.sql("create table rows (id int)")
    with planned(people.connection, people.shape(), None, 1) as plan:
        pass

    with pytest.raises(TransientError, match="the session that held the view of the data is gone; read again"):
        list(ExportReader(people.connection, people.shape(), plan.view).part(None, ExportPart()))


def test_a_reader_that_is_cut_off_is_tried_again_and_gives_no_part_of_the_rows_as_all(many: People) -> None:
    many.sql("insert into rows select n, 0, repeat('p', 2000) from generate_series(10000, 60000) n")
    reader = ExportReader(many.connection, many.shape(compare={"pad": "string"}), None)

    with pytest.raises(TransientError):
        for _ in reader.part(None, ExportPart()):
            many.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name = 'makewhole' and datname = current_database()"
            )
