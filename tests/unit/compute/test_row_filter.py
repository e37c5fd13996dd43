"""Check the terms of a `where` against values of JSON."""

from decimal import Decimal
from typing import Any

import pytest

from makewhole.compute.row_filter import filter_terms, typed_term

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("literal", "value", "holds"),
    [
        (False, False, True),
        (False, True, False),
        (False, "false", True),
        (False, "FALSE", False),
        (False, 0, False),
        (False, None, False),
        (5, 5, True),
        (5, Decimal("5.0"), True),
        (5, "5", True),
        (5, "05", False),
        (5, 6, False),
        (5, True, False),
        (Decimal("1.10"), Decimal("1.1"), True),
        (Decimal("1.1"), Decimal("1.1"), True),
        (Decimal("1.1"), Decimal("1.104"), False),
        (Decimal("1.1"), Decimal("Infinity"), False),
        ("UA", "UA", True),
        ("UA", "UA ", False),
        ("UA", "ua", False),
        ("UA", None, False),
        ("UA", {"x": 1}, False),
        ("UA", ["UA"], False),
        ("5", 5, True),
        ("x", 5, False),
        ("", "", True),
        ("", None, False),
    ],
)
def test_a_term_holds_as_it_would_in_postgresql(literal: Any, value: Any, holds: bool) -> None:
    assert typed_term("column", literal).holds(value) is holds


@pytest.mark.parametrize(
    ("where", "declared", "passing", "stopped"),
    [
        ("x != 5", "int", [6, "6", "n/a", True, {"y": 5}], [5, "5.00", " 5 ", None]),
        ("x < 5", "int", [4, "4.99", Decimal("-1e50"), "-Infinity"], [5, "n/a", None, True, "NaN", "Infinity"]),
        ("x >= 5", "int", [5, "5.0", "NaN", "Infinity", Decimal("1E+9999")], [4, "n/a", None, [5], "1_000", "٥"]),
        ("x in (5, 7.5)", "int", ["5", Decimal("7.50")], [6, "n/a", None]),
        ("x not in (5, 7.5)", "int", [6, "n/a"], ["5", Decimal("7.50"), None]),
        ("x > 'Infinity'", "int", ["NaN"], ["Infinity", 1, None]),
        ("x = 'NaN'", "int", ["NaN"], ["nan", "Infinity", None]),
        ("x < '2013-01-01'", "timestamp", ["2012-12-31T23:59:59.999999Z", "-infinity", "2013-01-01 01:00+02"],
         ["2013-01-01", "infinity", "n/a", 5, None]),
        ("x <= '2013-01-01'", "date", ["2013-01-01", "2013-01-01T23:59Z", "0044-03-15 BC"],
         ["2013-01-02", "10000-01-01", "infinity", "n/a", None]),
        ("x > '2013-01-01T00:00:00.0014Z'", "timestamp(3)", ["2013-01-01T00:00:00.0015Z"],
         ["2013-01-01T00:00:00.0011Z", None]),
        ("x != true", "boolean", [False, "off", 0, "n/a"], [True, "T", "yes", 1, None]),
        ("x != 'a'", "string", ["A", "a ", {"a": 1}], ["a", None, "__debezium_unavailable_value"]),
        ("x is null", "string", [None], ["", 0, False, [], "null", "__debezium_unavailable_value"]),
        ("x is null", "json", [None, "null"], ["", {}]),
        ("x is not null", "int", ["n/a", 0, ""], [None]),
    ],
)  # fmt: skip
def test_a_typed_term_holds_by_value_and_in_the_order_of_its_type(
    where: str, declared: str, passing: list[Any], stopped: list[Any]
) -> None:
    (term,) = filter_terms(where, {"x": declared})
    assert [value for value in (*passing, *stopped) if term.holds(value)] == passing


def test_no_term_needs_a_type_to_leave_null_out() -> None:
    for where in ("x = 5", "x != 5", "x < 5", "x in (5)", "x not in (5)", "x is not null"):
        assert not filter_terms(where, {})[0].holds(None)
    assert filter_terms("x != 5", {})[0].holds("05")
    assert not filter_terms("x not in (5, 6)", {})[0].holds(Decimal("5.0"))
