"""Test what a leaf of a template may say, that its values are exact, and that data are never anything but data."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.config.template.expressions import read_leaf
from makewhole.config.values import UnfitError, shown
from makewhole.model.errors import RefusedError

pytestmark = pytest.mark.unit

DATA: dict[str, Any] = {
    "key": "C-1",
    "row": {
        "amount": Decimal("10.50"),
        "items": ["a", Decimal(2)],
        "__class__": "a column",
        "gift": True,
        "note": None,
        "shop": {"name": "Zürich"},
        "tiny": Decimal("1E-400"),
        "huge": Decimal("1E+999999"),
        "long": Decimal("9" * 600),
    },
    "source": {"value": {"id": Decimal("12345678901234567890")}},
    "finding": {"copy": 2},
    "window": {"number": 7, "start": None},
    "plan": {"pipeline": "coupons"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("coupon_reversed", "coupon_reversed"),
        ("", ""),
        ("{{ key }}", "C-1"),
        ("{{ row.amount }}", Decimal("10.50")),
        ("{{row['amount']}}", Decimal("10.50")),
        ("{{ -row.amount }}", Decimal("-10.50")),
        ("{{ row.amount * 3 - 1 }}", Decimal("30.50")),
        ("{{ (-row.amount) | abs }}", Decimal("10.50")),
        ("{{ source.value.id }}", Decimal("12345678901234567890")),
        ("{{ row.gift }}", True),
        ("{{ row.note }}", None),
        ("{{ row.items }}", ["a", Decimal(2)]),
        ("{{ row.items[1] }}", Decimal(2)),
        ("{{ row.shop }}", {"name": "Zürich"}),
        ("{{ row.shop.name | upper }}", "ZÜRICH"),
        ("{{ row.gone | default('none') }}", "none"),
        ("{{ 'gift' if row.gift and finding.copy > 1 else 'sale' }}", "gift"),
        ("{{ row.gone is defined }}", False),
        ("{{ window.start is none }}", True),
        ("{{ 5 }}", 5),
        ("Coupon {{ key }}: {{ row.amount }} ({{ row.gift }})\n", "Coupon C-1: 10.50 (true)\n"),
        ("{{ key }}{{ finding.copy }}", "C-12"),
        ("a {{ row.items }}", 'a ["a",2]'),
        ("{# why #}x", "x"),
        ("{% raw %}{{ key }}{% endraw %}", "{{ key }}"),
    ],
)
def test_one_expression_keeps_its_value_and_a_text_around_it_makes_it_a_text(text: str, value: Any) -> None:
    answer = read_leaf(text).value(DATA)
    assert (type(answer), answer) == (type(value), value)
    assert str(answer) == str(value)


def test_numbers_of_any_length_are_computed_to_the_last_digit_or_not_at_all() -> None:
    assert read_leaf("{{ row.long + 1 }}").value(DATA) == Decimal("1E+600")
    with pytest.raises(RefusedError) as caught:
        read_leaf("{{ row.long * row.long }}").value(DATA)
    assert str(caught.value) == "unfit: the template '{{ row.long * row.long }}' cannot be computed exactly"
    with pytest.raises(RefusedError, match="cannot be computed exactly"):
        read_leaf("{{ row.huge + row.tiny }}").value(DATA)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(-(10**30), 10**30))
def test_a_number_comes_out_as_it_went_in(number: Decimal, whole: int) -> None:
    scope = DATA | {"row": {"amount": number, "whole": Decimal(whole)}}

    assert str(read_leaf("{{ row.amount }}").value(scope)) == str(number)
    assert read_leaf("{{ -row.whole }}").value(scope) == -whole
    assert read_leaf("{{ row.whole * 2 }}").value(scope) == whole * 2


@pytest.mark.parametrize(
    "text",
    [
        "{{ row.gone }}",
        "x {{ row.gone }}",
        "{{ row.gone.further }}",
        "{{ row.note.further }}",
        "x {{ row.note }}",
        "{{ row.items[2] }}",
        "{{ row.items['a'] }}",
        "{{ row[key] }}",
        "{{ key[0] }}",
        "{{ key * 1000000000 }}",
        "{{ row.gift * 2 }}",
        "{{ row.items * 1000000000 }}",
        "{{ -key }}",
        "{{ key > 1 }}",
        "{{ row.amount + key }}",
        "{{ key | abs }}",
        "{{ row.note | upper }}",
    ],
)
def test_data_that_are_not_what_the_template_names_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read_leaf(text).value(DATA)

    assert str(caught.value) == (
        f"unfit: the template {text!r} names what the data do not have, or have not of that kind"
    )
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "data",
    [
        "{{ 7 * 7 }}",
        "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
        "{{ key }}{# gone? #}",
        "__import__('os').system('id')",
        "[1, 2]",
        "1e5",
        "\x1b[2J\r\nX-Header: y\x00",
        "‮gnirts",
        "{" * 50_000,
    ],
)
def test_data_are_never_a_template_nor_evaluated(data: str) -> None:
    scope = DATA | {"key": data, "row": {"note": data}}

    assert read_leaf("{{ key }}").value(scope) == data
    assert read_leaf("<{{ row.note }}>").value(scope) == f"<{data}>"
    assert read_leaf("{{ row.note | trim | default('x') }}").value(scope) == data.strip()


WRITE = "Write fields of data, such as {{ row.amount }}"
NAME = "Name a field of data: there is nothing else to reach"
FILTERS = "Allowed: abs, default, lower, string, trim, upper"


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("{{ ''.__class__ }}", "asks for '__class__'", NAME),
        ("{{ row.x.__mro__ }}", "asks for '__mro__'", NAME),
        ("{{ row['__globals__'] }}", "asks for '__globals__'", NAME),
        ("{{ row | attr('__class__') }}", "uses the filter 'attr'", FILTERS),
        ("{{ self }}", "names 'self'", "Allowed: finding, key, plan, row, source, window"),
        ("{{ cycler }}", "names 'cycler'", "Allowed: finding, key, plan, row, source, window"),
        ("{{ range(9) }}", "calls something", WRITE),
        ("{{ key.format(key) }}", "calls something", WRITE),
        ("{{ 9 ** 9 ** 9 }}", "uses what templates leave out (Pow)", WRITE),
        ("{{ row.amount / 3 }}", "uses what templates leave out (Div)", WRITE),
        ("{{ key ~ key }}", "uses what templates leave out (Concat)", WRITE),
        ("{{ key[1:] }}", "uses what templates leave out (Slice)", WRITE),
        ("{% set key = 1 %}", "has a statement", WRITE),
        ("{% include 'x' %}", "has a statement", WRITE),
        ("{{ " + "-" * 5_000 + "1 }}", "is not a template: it is too deep, or a number too long", WRITE),
        ("{{ " + "9" * 5_000 + " }}", "is not a template: it is too deep, or a number too long", WRITE),
        ("{{ row.amount * 1.1 }}", "computes with 1.1, which is not exact", "Write a whole number"),
        (
            "{{ key ",
            "is not a template: unexpected end of template, expected 'end of print statement'",
            WRITE,
        ),
        ("{% nonsense %}", "is not a template: Encountered unknown tag 'nonsense'", WRITE),
    ],
)
def test_what_no_leaf_may_say_is_refused_when_it_is_read(text: str, problem: str, remedy: str) -> None:
    with pytest.raises(UnfitError) as caught:
        read_leaf(text)

    assert (caught.value.found, caught.value.remedy) == (f"{shown(text)} {problem}", remedy)


def test_a_leaf_knows_the_names_it_uses() -> None:
    assert read_leaf("{{ row.amount }} of {{ source.value.id }}").names == {"row", "source"}
    assert read_leaf("nothing").names == frozenset()
