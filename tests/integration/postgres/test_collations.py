"""Test that a key column whose collation, or type, takes different texts for one is refused.

The packaged PostgreSQL has no ICU, whose collations alone can be made so: the catalogue is changed instead. The refusal
goes by the catalogue, and what such a collation does to look-ups is not run here. Nor has it `citext`: a type of that
name, made as the extension makes it, stands for it.
"""

import pytest

from makewhole.model.points import Erased, PointKind
from makewhole.postgres.read.key_columns import describe_columns
from tests.integration.postgres.people import People

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("kept")]

REMEDY = (
    'Give the column a deterministic collation, or name a view that reads it with `collate "C"`; what the collation '
    "takes for one are two keys then, as they are in a topic"
)


def refusal(path: str, table: str, column: str = "id") -> str:
    return (
        f"pipeline file: points.rows.{path}: column {column} of {table} has the collation public.folded, which is "
        f"nondeterministic: texts that differ are equal there, so that two keys would be one. {REMEDY}"
    )


@pytest.fixture
def folded(people: People) -> People:
    """A database with a collation that is nondeterministic, by the catalogue."""
    people.sql("create collation folded (provider = libc, locale = 'C')")
    people.sql("update pg_collation set collisdeterministic = false where collname = 'folded'")
    people.sql('create table rows (id text collate folded, part text collate "C", note text collate folded)')
    people.sql("create domain folded_text as text collate folded")
    return people


def problems(
    people: People, table: str = "rows", key: tuple[str, ...] = ("id",), erased: str | None = None
) -> list[str]:
    more = {} if erased is None else {"kind": PointKind.STORE, "erased": Erased(table=erased, key=key)}
    shape = people.shape(table, key)
    point = shape.point if not more else type(shape.point)(**(vars(shape.point) | more))
    columns, mistakes = describe_columns(people.connection, [type(shape)(point=point, compare={}, filters={})])
    assert bool(columns) is not bool(mistakes)
    return [str(problem) for problem in mistakes]


def test_a_key_column_that_takes_texts_for_one_is_refused(folded: People) -> None:
    assert problems(folded) == [refusal("key", "rows")]
    assert problems(folded, key=("part", "id")) == [refusal("key", "rows")]


def test_other_columns_may_have_such_a_collation(folded: People) -> None:
    assert problems(folded, key=("part",)) == []


def test_a_view_has_the_collation_that_it_reads_a_column_with(folded: People) -> None:
    folded.sql(
        'create view as_they_are as select id collate "C" as id from rows; create view same as select * from rows'
    )
    assert problems(folded, "as_they_are") == []
    assert problems(folded, "same") == [refusal("key", "same")]


def test_a_domain_brings_its_collation_along(folded: People) -> None:
    folded.sql("create table named (id folded_text)")
    assert problems(folded, "named") == [refusal("key", "named")]


def test_the_table_that_names_erased_keys_is_looked_at_too(folded: People) -> None:
    folded.sql('create table plain (id text collate "C")')
    assert problems(folded, "plain", erased="rows") == [refusal("erased", "rows")]
    assert problems(folded, "plain", erased="plain") == []
    assert problems(folded, "plain", erased="not_there") == []


def refusal_of_type(kind: str, column: str = "id", path: str = "key", table: str = "rows") -> str:
    return (
        f"pipeline file: points.rows.{path}: column {column} of {table} is of type {kind}, in which values whose texts "
        f"differ are equal, so that two keys would be one. Make the column a `text`, or name a view that reads it as "
        f'one: `{column}::text collate "C"`; what the type takes for one are two keys then, as they are in a topic'
    )


@pytest.fixture
def citext(people: People) -> People:
    """A database with a type like that of the extension `citext`."""
    people.sql("create type citext")
    people.sql("create function citextin(cstring) returns citext language internal immutable strict as 'textin'")
    people.sql("create function citextout(citext) returns cstring language internal immutable strict as 'textout'")
    people.sql(
        "create type citext (input = citextin, output = citextout, like = text, category = 'S', collatable = true)"
    )
    people.sql("create domain address as citext check (value is not null); create domain mail as address")
    return people


@pytest.mark.parametrize("column", ["citext", "address", "mail"])
def test_a_key_that_counts_without_its_capitals_is_refused(citext: People, column: str) -> None:
    citext.sql(f"create table rows (id {column}, note {column}, part text)")
    assert problems(citext) == [refusal_of_type("citext")]
    assert problems(citext, key=("part", "id")) == [refusal_of_type("citext")]
    assert problems(citext, key=("part",)) == []
    citext.sql('create view as_they_are as select id::text collate "C" as id from rows; create table plain (id text)')
    assert problems(citext, "as_they_are") == []
    assert problems(citext, "plain", erased="rows") == [refusal_of_type("citext", path="erased")]


@pytest.mark.parametrize("column", ["interval", "box", "circle", "path", "polygon", "lseg"])
def test_a_key_whose_type_has_several_texts_for_a_value_is_refused(people: People, column: str) -> None:
    people.sql(f"create table rows (id {column})")
    assert problems(people) == [refusal_of_type(column)]
