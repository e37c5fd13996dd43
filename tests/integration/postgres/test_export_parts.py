"""Test in which parts a table is read: together they have each row once, whatever kind of table it is."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest

from makewhole.postgres.read import export_parts
from makewhole.postgres.read.export import ExportReader
from makewhole.postgres.read.export_parts import ExportPart
from makewhole.postgres.read.visibility import current_snapshot
from makewhole.tables.shape import EarlierRows, TimeBounds
from tests.integration.postgres.people import People, planned

pytestmark = pytest.mark.integration

FIRST = datetime(2013, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND_DAY = TimeBounds(start=FIRST + DAY, end=FIRST + 2 * DAY)
FILL = "insert into rows select n, repeat('p', 200), '2013-01-01'::date + n * interval '1 minute' from {} n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are made of few pages and rows."""
    monkeypatch.setattr(export_parts, "_PAGES_PER_PART", 16)
    monkeypatch.setattr(export_parts, "_ROWS_PER_PART", 100)


def fill(people: People, table: str, *more: str, rows: int = 10_000) -> None:
    """Make a table of a minute a row from the first day on."""
    people.sql(f"create table rows (id int, pad text, at timestamptz) {table}")
    people.sql(";".join([*more, FILL.format(f"generate_series(0, {rows - 1})"), "analyze rows"]))


def parts(people: People, bounds: TimeBounds | None) -> list[list[int]]:
    """Return the keys of each part."""
    shape = people.shape(time="at")
    with planned(people.connection, shape, bounds, 4) as plan:
        reader = ExportReader(people.connection, shape, plan.view)
        frames = [list(reader.part(bounds, part)) for part in plan.parts]
    return [sorted(int(key) for key in pl.concat(of_part)["key"]) if of_part else [] for of_part in frames]


def all_of(slices: list[list[int]]) -> list[int]:
    return sorted(key for of_part in slices for key in of_part)


def test_pages_tile_the_table_with_an_open_end(people: People) -> None:
    fill(people, "")
    with planned(people.connection, people.shape(), None, 3) as plan:
        ranges = plan.parts

    assert ranges[0].first_page == 0 and ranges[-1].last_page is None
    assert all(part.last_page == after.first_page for part, after in pairwise(ranges))
    assert {part.relation for part in ranges} == {None}


def test_few_rows_that_an_index_finds_are_read_at_once(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_parts, "_ROWS_PER_PART", 1_000)
    fill(people, "", "create index on rows (at)")

    with planned(people.connection, people.shape(time="at"), SECOND_DAY, 4) as plan:
        assert plan.parts == (ExportPart(),)

    assert all_of(parts(people, SECOND_DAY)) == list(range(1440, 2880))


@pytest.mark.parametrize("method", ["btree", "brin"])
def test_many_rows_that_an_index_finds_are_read_by_their_times(people: People, method: str) -> None:
    fill(people, "", f"create index on rows using {method} (at) ", rows=200_000)

    slices = parts(people, SECOND_DAY)

    assert slices == [list(range(1440 + at * 360, 1800 + at * 360)) for at in range(4)]


def test_rows_without_a_time_and_late_ones_are_read_once_beside_the_times(people: People) -> None:
    fill(people, "", "create index on rows (at)", rows=100_000)
    seen = current_snapshot(people.connection)
    people.sql("insert into rows values (-1, '', null), (-2, '', 'infinity'), (-3, '', '2013-01-01')")
    earlier = EarlierRows(start=FIRST, end=FIRST + DAY, seen_before=seen)

    slices = parts(people, TimeBounds(start=SECOND_DAY.start, end=SECOND_DAY.end, seen_before=seen, earlier=(earlier,)))

    assert len(slices) == 4
    assert all_of(slices) == [-3, -2, -1, *range(1440, 2880)]


def by_day(days: int) -> list[str]:
    edges = [FIRST + at * DAY for at in range(days + 1)]
    return [
        f"create table rows_{at} partition of rows for values from ('{start}') to ('{end}')"
        for at, (start, end) in enumerate(pairwise(edges))
    ]


def test_a_partition_is_read_by_its_pages(people: People) -> None:
    fill(people, "partition by range (at)", *by_day(7))

    with planned(people.connection, people.shape(time="at"), SECOND_DAY, 4) as plan:
        ranges = plan.parts

    assert [part.relation for part in ranges] == ['"public"."rows_1"'] * len(ranges)
    assert len(ranges) == 2
    slices = parts(people, SECOND_DAY)
    assert all(slices) and all_of(slices) == list(range(1440, 2880))


def test_partitions_of_several_days_are_read_by_the_pages_of_each(people: People) -> None:
    fill(people, "partition by range (at)", *by_day(7))
    people.sql("delete from rows where at >= '2013-01-04' and at < '2013-01-05'")

    slices = parts(people, TimeBounds(start=None, end=FIRST + 6 * DAY))

    assert len(slices) >= 4
    assert all_of(slices) == [key for key in range(6 * 1440) if not 3 * 1440 <= key < 4 * 1440]


def test_tables_that_inherit_are_read_with_their_own_pages(people: People) -> None:
    fill(people, "")
    people.sql("create table more () inherits (rows); insert into more select id + 20000, pad, at from rows")

    slices = parts(people, None)

    assert len(slices) > 2
    assert all_of(slices) == [*range(10_000), *range(20_000, 30_000)]
