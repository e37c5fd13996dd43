"""Test reading a sink's own progress: the rows of its partitions and of no one else, of one moment, and who may."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import PermanentError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.postgres.read.progress import read_progress_rows
from makewhole.tables.progress import ProgressRows
from makewhole.window.readers.unfit_progress import unfit_progress
from tests.integration.postgres.people import People

pytestmark = pytest.mark.integration

STORE = TablePoint(name="store", kind=PointKind.STORE, connection="people", table="rows", key=("id",))
REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
BARE = SinkProgress(table="progress", partition="part", offset="next")


def rows(people: People, progress: SinkProgress = BARE, partitions: range = range(3)) -> Mapping[int, ProgressRows]:
    return read_progress_rows(people.connection, STORE, progress, "it's", partitions)


def one(offset: str) -> ProgressRows:
    return ProgressRows(rows=1, offsets=1, least=offset, greatest=offset)


@pytest.mark.parametrize("kind", ["smallint", "integer", "bigint", "numeric", "numeric(20,0)"])
def test_every_partition_has_its_rows_whatever_the_type_of_the_columns(people: People, kind: str) -> None:
    people.sql(f"create table progress (part {kind}, next {kind})")
    people.sql("insert into progress values (0, 5), (1, 7), (1, 6), (2, null), (99, 1), (null, 3)")

    assert rows(people) == {
        0: one("5"),
        1: ProgressRows(rows=2, offsets=2, least="6", greatest="7"),
        2: ProgressRows(rows=1, offsets=0, least=None, greatest=None),
    }
    assert rows(people, partitions=range(1)) == {0: one("5")}


def test_other_topics_and_other_sinks_in_the_table_are_left_out(people: People) -> None:
    people.sql("create table progress (topic varchar(9), sink char(6), part int, next numeric, live boolean, run int)")
    people.sql(
        "insert into progress values ('it''s', 'wh', 0, 5, true, 3), ('other', 'wh', 0, 6, true, 3), (null, 'wh', 0, "
        "7, true, 3), ('it''s', 'lake', 0, 8, true, 3), ('it''s', 'wh', 0, 9, false, 3), "
        "('it''s', 'wh', 0, 10, true, 4)"
    )
    where = "sink = 'wh' and live = true and run = 3"
    of_sink = SinkProgress(table="progress", partition="part", offset="next", topic="topic", where=where)

    assert rows(people, of_sink) == {0: one("5")}
    assert rows(people)[0].rows == 6


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        ("sink != 'wh'", "7"),
        ("sink in ('lake', '100%')", "7"),
        ("sink not in ('lake', 'x') and run is not null", "5"),
        ("run is null", "9"),
        ("run > 3 and run <= 4.5", "7"),
        ("run < 4", "5"),
    ],
)
def test_rows_of_a_sink_are_distinguished_by_every_comparison(people: People, where: str, offset: str) -> None:
    people.sql("create table progress (part int, next int, sink text, run numeric)")
    people.sql("insert into progress values (0, 5, 'wh', 3), (0, 7, 'lake', 4), (0, 9, 'wh', null)")
    of_sink = replace(BARE, where=where)
    assert rows(people, of_sink) == {0: one(offset)}
    assert problems_of(people.connection, of_sink) == []


@pytest.mark.parametrize("where", ["sink < 'x'", "sink in (1, 2)", "run != 'x'", "run = true", "gone is null"])
def test_rows_of_a_sink_are_compared_in_the_type_of_the_column(people: People, where: str) -> None:
    people.sql("create table progress (part int, next int, sink text, run numeric)")
    (problem,) = problems_of(people.connection, replace(BARE, where=where))
    assert problem.startswith("hops orders→store.progress.where: progress")


def test_a_view_can_hold_the_newest_row_of_each_partition(people: People) -> None:
    people.sql("create table kept (part int, next text); insert into kept values (0, '5'), (0, '10'), (1, '2')")
    people.sql("create view progress as select part, max(next::bigint) as next from kept group by part")

    assert rows(people) == {0: one("10"), 1: one("2")}
    assert problems_of(people.connection) == []


def test_what_is_no_number_is_read_as_what_it_is(people: People) -> None:
    people.sql("create table progress (part numeric, next numeric)")
    people.sql("insert into progress values (0, 'NaN'), (1, 5.50), (2.5, 3), (2, -1)")

    assert rows(people) == {0: one("NaN"), 1: one("5.50"), 2: one("-1")}


def test_a_missing_right_to_read_it_is_reported_when_a_window_is_opened_and_no_other_column_is_needed(
    people: People,
) -> None:
    people.sql("create table progress (part int, next bigint, secret text); insert into progress values (0, 5, 'x')")
    role = "reader_of_progress"
    people.sql(f"create role {role}")
    try:
        dsn = f"{people.connection.dsn}{'&' if '?' in people.connection.dsn else '?'}options=-c%20role%3D{role}"
        reader = PostgresConnection(id="people", dsn=dsn)
        assert problems_of(reader) == [
            "hops orders→store.progress.table: the user of connection people may not read progress. `grant select on "
            "progress` to it"
        ]
        with pytest.raises(PermanentError, match=r"reading the progress of what loads store \(next of progress\)"):
            read_progress_rows(reader, STORE, BARE, "o", [0])
        people.sql(f"grant select (part, next) on progress to {role}")
        assert problems_of(reader) == []
        assert read_progress_rows(reader, STORE, BARE, "o", [0]) == {0: one("5")}
    finally:
        people.sql(f"drop owned by {role}; drop role {role}")


def problems_of(connection: PostgresConnection, progress: SinkProgress = BARE) -> list[str]:
    orders = TopicPoint(name="orders", connection="kafka", topic="o", key=("$.id",))
    hop = Hop(source="orders", target="store", remedies=REPORT, progress=progress)
    pipeline = Pipeline(name="p", points={"orders": orders, "store": STORE}, hops=(hop,))
    return [
        f"{problem.path}: {problem.found}. {problem.remedy}"
        for problem in unfit_progress(pipeline, {"people": connection})
    ]
