"""A value with its key's columns in front: the same to PostgreSQL as the one put over the other there."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.tables.items import UpsertRow

pytestmark = pytest.mark.unit

NAMES = st.text(st.characters(codec="utf-8"), max_size=5)
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | NAMES
VALUES = st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=2), max_size=4)


def over_key(key: str, value: str, *columns: str) -> str:
    return UpsertRow(seq=0, key=key, key_columns=columns, value=value, columns=(), before=()).over_key


@given(name=NAMES, key=KEYS, value=VALUES, indent=st.none() | st.integers(0, 2), space=st.text(" \t\r\n", max_size=2))
def test_what_the_value_says_itself_wins(
    name: str, key: str, value: dict[str, Any], indent: int | None, space: str
) -> None:
    text = f"{space}{json.dumps(value, indent=indent)}{space}"
    assert json.loads(over_key(key, text, name)) == {name: key, **value}


def test_a_key_of_several_columns_gives_each_its_part() -> None:
    text = over_key('["2013","U\\"A"]', '{ "seats": 1.50, "year": 7 }', "year", "carrier")
    assert text == '{"year":"2013","carrier":"U\\"A", "seats": 1.50, "year": 7 }'


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", '"{}"', "{,}", "{} {}", "{}}", "\x0b{}", "\ufeff{}", '{"a"']
)
def test_what_is_no_object_does_not_become_one(text: str) -> None:
    made = over_key("k", text, "id")
    with suppress(ValueError):
        assert not isinstance(json.loads(made), dict)
