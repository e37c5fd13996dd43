"""Test that a filter passes a row of a table exactly where it passes a record with what PostgreSQL writes for that row.

Every operator, on every family of types, through both COPY paths and through the look-up of a ledger's rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from makewhole.compute.row_filter import TypedTerm, filter_terms
from makewhole.compute.value_types import value_types
from makewhole.config.hops.where import ORDERING, Operator
from makewhole.model.pipeline import Pipeline
from makewhole.postgres.connect import connect
from makewhole.postgres.read.many_keys import ledger_records
from makewhole.postgres.table import describe_table
from makewhole.tables.rows import LedgerReading
from tests.integration.postgres.people import People
from tests.integration.postgres.test_binary_copy import read_both_ways
from tests.integration.postgres.test_type_families import (
    DRAWN,
    FAMILIES,
    MAKE,
    UNREAD,
    _kinds,
    _pipeline,
    fill,
    written,
)
from tests.world.examples import seeds

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280), pytest.mark.usefixtures("kept")]

ORDERED = {"smallint", "integer", "bigint", "numeric", "numeric(10,2)", "real", "double precision", "money",
           "timestamp", "timestamp(0)", "timestamptz", "date"}  # fmt: skip
NEVER_COMPARED = {"json", "jsonb", *UNREAD, *(name for name in FAMILIES if name.endswith("[]"))}
LITERALS = ["5", "-7.05", "0", "19.00", "true", "false", "'n/a'", "'NaN'", "'Infinity'", "'infinity'", "'-infinity'",
            "'2013-01-01'", "'2013-01-01 12:00:00+02'", "'10000-01-01'", "'0044-03-15 BC'", "'1e3'", "''", "'a'", "'t'",
            "'10.0.0.1'", "'sad'", "'100%'", "'100%'", "'__debezium_unavailable_value'"]  # fmt: skip
TEXTS = ["' 19.00'", "'1e3'", "'.5'", "'5.'", "'+7'", "'1_0'", "'NaN'", "'-Infinity'", "'infinity'", "'$1,234.50'",
         "'t'", "'YES '", "'off'", "'0'", "'1'", "'2013-01-01'", "'__debezium_unavailable_value'", "'٣'", "'1e9999'",
         "repeat('1', 1001)", "'n/a'", "'19'", "E'\\u00a05'", "'!n/a'", "'a'", "'A'", "''"]  # fmt: skip
TYPES = {**FAMILIES, "text": [*FAMILIES["text"], *TEXTS], "varchar": TEXTS, "char(40)": TEXTS[:-9]}

MOST_FILTERS = 90
"""A statement of PostgreSQL names no more than 100."""
Filter = tuple[str, Pipeline, tuple[TypedTerm, ...]]
"""A condition, its pipeline and its terms."""


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def terms_for(people: People, literals: Sequence[str]) -> Iterator[Filter]:
    """Yield every filter of the column that can be compared, with its pipeline and its terms."""
    conditions = ["x is null", "x is not null"]
    for at, literal in enumerate(literals):
        other = literals[at - 1]
        conditions += [f"x {operator} {literal}" for operator in Operator if operator in ORDERING or operator in "=!="]
        conditions += [f"x in ({literal}, {literal})", f"x not in ({literal}, {other})"]
    kinds = _kinds(people)
    for condition in dict.fromkeys(conditions):
        try:
            pipeline = _pipeline(where=condition)
            types, problems = value_types(replace(pipeline, compare={}), kinds)
        except ValueError:  # a list of literals of several types, an order of booleans
            continue
        if not problems:
            yield condition, replace(pipeline, filter_types=types.filters), filter_terms(condition, types.filters)


def require_agreement(people: People, column_type: str, literals: Sequence[str]) -> set[str]:
    """Require that table and records pass the same filters; return the operators that were tried."""
    filters = list(terms_for(people, literals))
    for begin in range(0, len(filters), MOST_FILTERS):
        require_same(people, column_type, filters[begin : begin + MOST_FILTERS])
    return {term.operator for _, _, terms in filters for term in terms}


def require_same(people: People, column_type: str, filters: Sequence[Filter]) -> None:
    """Require that table and records pass the same of these filters."""
    shape = people.shape(filters={f"h{at}": terms for at, (_, _, terms) in enumerate(filters)})
    binary, text = read_both_ways(people, shape)
    assert binary["excluded_by"].to_list() == text["excluded_by"].to_list()
    excluded = {key: set(names.split(",")) for key, names in text.select("key", "excluded_by").rows()}
    passed = {key: [f"h{at}" not in names for at in range(len(filters))] for key, names in excluded.items()}
    for key, spellings in written(people).items():
        for spelling in spellings:
            held = [all(term.holds(spelling) for term in terms) for _, _, terms in filters]
            tried = zip(filters, passed[key], held, strict=True)
            differing = [condition for (condition, _, _), left, other in tried if left is not other]
            assert not differing, (column_type, spelling, differing)
    require_same_look_up(people, filters, passed)


def require_same_look_up(people: People, filters: Sequence[Filter], passed: dict[str, list[bool]]) -> None:
    """Require that the look-up of a ledger's rows passes the same, for some of the filters."""
    point = replace(people.shape().point, name="rows2")
    with connect(people.connection) as session:
        table = describe_table(session, point)
        for at, (condition, pipeline, _) in list(enumerate(filters))[:: max(len(filters) // 4, 1)]:
            reading = LedgerReading(terms=filter_terms(pipeline.hops[0].where, pipeline.filter_types))
            records = ledger_records(session, table, point, list(passed), reading)
            assert {key: record.passes for key, record in records.items()} == {
                key: of_key[at] for key, of_key in passed.items()
            }, condition


@pytest.mark.parametrize("part", range(6))
def test_a_filter_passes_the_row_and_what_is_written_for_it(people: People, part: int) -> None:
    people.sql(MAKE)
    for column_type in list(TYPES)[part::6]:
        fill(people, column_type, TYPES[column_type])
        own = [text for text in map(_own_text, TYPES[column_type]) if text is not None]
        tried = require_agreement(people, column_type, [*LITERALS, *own])
        nulls, compared = {Operator.IS_NULL, Operator.IS_NOT_NULL}, {Operator.EQUAL, Operator.UNEQUAL}
        assert nulls <= tried
        assert (compared <= tried) is (column_type not in NEVER_COMPARED), column_type
        if column_type in ORDERED:
            assert tried == {*Operator}


def _own_text(value: str) -> str | None:
    """Return a value as it is written in a filter; None: it is more than a literal."""
    return value if value[:1] == "'" and value.endswith("'") and "::" not in value else None


@pytest.mark.parametrize("column_type", [name for name in DRAWN if name not in NEVER_COMPARED])
def test_any_value_and_any_literal_agree(people: People, column_type: str) -> None:
    people.sql(MAKE)

    @settings(
        max_examples=len(seeds(6)),
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(values=st.lists(DRAWN[column_type], min_size=8, max_size=8), others=st.lists(DRAWN[column_type], max_size=3))
    def check(values: list[str], others: list[str]) -> None:
        fill(people, column_type, [quoted(value) for value in values])
        literals = [quoted(value) for value in [*values[:4], *others]]
        literals += [value for value in values if column_type == "numeric" and "E" not in value and value != "-0"]
        require_agreement(people, column_type, literals)

    check()
