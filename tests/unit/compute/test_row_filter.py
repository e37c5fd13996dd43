"""Check the terms of a `where` against values of JSON."""

from decimal import Decimal
from typing import Any

import pytest

from makewhole.compute.row_filter import typed_term

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
