"""Test what single values may say: durations, schedules, conditions."""

from decimal import Decimal

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from makewhole.config.hops.where import Operator, WhereTerm, parse_where
from makewhole.config.values import UnfitError, compare_type, duration, integer, schedule, table, topic, topic_part

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("5m", 300), ("4h", 14_400), ("2d", 172_800), ("0s", 0)])
def test_durations_are_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["5", "m", "-5m", "5 m", "1h30m", "5M", "1.5h", "999999999d", "٥m"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(UnfitError):
        duration(text)


@pytest.mark.parametrize(
    "text",
    ["0 2 * * *", "*/15 8-18 1,15 jan-mar mon", "@daily", "5 4 * * 7", "0-30/5 * * DEC SUN", "0 22-4 * * fri-mon",
     "0 2 L * *", "0 2 * * mon#1"],
)  # fmt: skip
def test_good_schedules_are_taken(text: str) -> None:
    assert schedule(text) == text


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *",
             "1,,2 * * * *", "a * * * *", "@once", "0 0 2 * * *", "- * * * *"]
)  # fmt: skip
def test_bad_schedules_are_refused(text: str) -> None:
    with pytest.raises(UnfitError):
        schedule(text)


_ITEMS = st.one_of(
    st.just("*"),
    st.integers(0, 60).map(str),
    st.tuples(st.integers(0, 31), st.integers(0, 31)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
    st.integers(0, 12).map(lambda step: f"*/{step}"),
)


@given(st.lists(_ITEMS, min_size=5, max_size=5).map(" ".join))
def test_five_fields_are_taken_when_airflows_own_parser_takes_them(text: str) -> None:
    try:
        schedule(text)
        is_taken = True
    except UnfitError:
        is_taken = False
    assert is_taken == croniter.is_valid(text)


def test_a_condition_becomes_terms() -> None:
    assert parse_where("cancelled = false AND carrier='O''Hare and on' and n = -3 and x = 1.50") == (
        WhereTerm(column="cancelled", literals=(False,)),
        WhereTerm(column="carrier", literals=("O'Hare and on",)),
        WhereTerm(column="n", literals=(-3,)),
        WhereTerm(column="x", literals=(Decimal("1.50"),)),
    )


def test_a_condition_compares_in_several_ways() -> None:
    text = "a != 1 and a <> 2 AND b<'x' and c <= -1.5 and d > 2 and e>=3 and f IN ('x', 'y''z' ) and g Not  in(true)"
    assert [
        (term.column, term.operator.value, term.literals)
        for term in parse_where(f"{text} and h is\nnull and i IS NOT null")
    ] == [
        ("a", "!=", (1,)),
        ("a", "!=", (2,)),
        ("b", "<", ("x",)),
        ("c", "<=", (Decimal("-1.5"),)),
        ("d", ">", (2,)),
        ("e", ">=", (3,)),
        ("f", "in", ("x", "y'z")),
        ("g", "not in", (True,)),
        ("h", "is null", ()),
        ("i", "is not null", ()),
    ]


def test_a_column_may_be_called_as_an_operator() -> None:
    assert [
        (term.column, term.operator) for term in parse_where("in in (1) and is = 2 and not is null and null != 1")
    ] == [
        ("in", Operator.IN),
        ("is", Operator.EQUAL),
        ("not", Operator.IS_NULL),
        ("null", Operator.UNEQUAL),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1 or b = 2", "There is no `or`, and there are no parentheses but around the literals of `in`. "),
        ("(a = 1)", "There is no `or`, and there are no parentheses but around the literals of `in`. "),
        ("a = null", "Write `column is null`"),
        ("a != null", "Write `column is not null`"),
        ("a in (1, 'x')", "Write all literals of a list as numbers, or all as 'texts', or true and false"),
        ("a >= true", "Write `a = true` or `= false`"),
    ],
)
def test_what_a_condition_cannot_say_is_answered(text: str, message: str) -> None:
    with pytest.raises(UnfitError) as caught:
        parse_where(text)
    assert caught.value.remedy.startswith(message)


@pytest.mark.parametrize(
    "text",
    ["", "a", "a =", "a = b", "a == 1", "a = 1 or b = 2", "a = 1 and", "and a = 1", "a = 'x", "a = 1; drop table t",
     "a = 1 b = 2", "a = true1", "a = 1e5", "a = 1andb = 2", "a = null", "(a = 1)", "a.b = 1",
     "a <> null", "a in 1", "a in ()", "a in (1,)", "a in (1", "a in (1, 'x')",
     "a in (1) or b = 2", "a is", "a is true", "is null", "a not = 1", "a < true", "a between 1 and 2", "a ! = 1"],
)  # fmt: skip
def test_anything_else_is_no_condition(text: str) -> None:
    with pytest.raises(UnfitError):
        parse_where(text)


@given(st.text(max_size=30))
def test_a_text_literal_comes_back_as_it_was(text: str) -> None:
    quoted = text.replace("'", "''")
    assert parse_where(f"a = '{quoted}' and b = 1")[0] == WhereTerm(column="a", literals=(text,))


@pytest.mark.parametrize("text", ["a.b.c", "a b", 'a"b', "a;b", "1a", "", ".a", "a.", "a-b", "a" * 64, "a\n"])
def test_unsafe_table_names_are_refused(text: str) -> None:
    with pytest.raises(UnfitError):
        table(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a b", "a/b", "ä", "a" * 250])
def test_impossible_topic_names_are_refused(text: str) -> None:
    with pytest.raises(UnfitError):
        topic(text)


@pytest.mark.parametrize("text", ["$", "$.", "$.a.", "$a", "a", "header:", "header: x", "kafka.value", "$.a[0]"])
def test_places_that_no_record_has_are_refused(text: str) -> None:
    with pytest.raises(UnfitError):
        topic_part(text)


@pytest.mark.parametrize("text", ["010", "0x1", "1:30", "1.0", "", "1e3", "0b1"])
def test_numbers_that_yaml_reads_in_its_own_way_are_refused(text: str) -> None:
    with pytest.raises(UnfitError):
        integer(text)


@pytest.mark.parametrize("text", ["decimal", "decimal(0,0)", "decimal(5)", "varchar", "float", "Decimal(5,1)"])
def test_unknown_types_are_refused(text: str) -> None:
    with pytest.raises(UnfitError):
        compare_type(text)
