"""Check which partitions are named of which nothing has come, and what is said of them."""

from typing import Any

import pytest

from makewhole.window.readers.partitions_missing import partitions_missing, partitions_sentence

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("missing", "records", "expected"),
    [
        ({1: 25}, {0: 30, 1: 25}, {"whole": {"1": 25}, "others": {"missing": 0, "records": 30}}),
        ({0: 3, 1: 5, 2: 4}, {0: 9, 1: 5, 2: 4}, {"whole": {"1": 5, "2": 4}, "others": {"missing": 3, "records": 9}}),
        ({1: 24}, {0: 30, 1: 25}, None),  # something of it came
        ({0: 30, 1: 25}, {0: 30, 1: 25}, None),  # nothing came at all
        ({1: 25}, {0: 0, 1: 25}, None),  # there are no others
        ({}, {0: 30, 1: 0}, None),
        ({}, {}, None),
    ],
)
def test_partitions_of_which_all_is_missing_are_named_where_others_came(
    missing: dict[int, int], records: dict[int, int], expected: dict[str, Any] | None
) -> None:
    assert partitions_missing(missing, records) == expected


def test_a_sentence_says_what_is_missing_where() -> None:
    counts = {"whole": {"1": 1}, "others": {"missing": 0, "records": 30}}
    two = {"whole": {"1": 1000, "3": 25}, "others": {"missing": 3, "records": 4000}}

    assert partitions_sentence("orders", "copies", counts) == (
        "nothing of partition 1 of orders is in copies (1 record), and 0 of 30 records of the others are missing: does "
        "its reader take all partitions?"
    )
    assert partitions_sentence("orders", "copies", two) == (
        "nothing of partitions 1, 3 of orders is in copies (1,025 records), and 3 of 4,000 records of the others are "
        "missing: does its reader take all partitions?"
    )
