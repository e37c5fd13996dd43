"""Check the one rule by which versions are read, and that files of the key index lose nothing of them."""

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.canonical import canonical_text
from makewhole.compute.versions import (
    MOMENTS,
    UNREADABLE,
    VERSION,
    are_one_version,
    in_64_bits,
    is_later_version,
    is_multiple,
    joined_versions,
    shown_version,
    split_versions,
    version_number,
    version_of_canonical,
    version_unit,
    versions_of_table,
    versions_of_texts,
)
from tests.world.examples import examples

pytestmark = pytest.mark.unit

NUMBERS = st.decimals(-(2**63) + 1, 2**63 - 1, places=9) | st.integers(-(2**63) + 1, 2**63 - 1).map(Decimal)
MICROSECONDS = st.integers(-(2**63) + 1, 2**63 - 1)
VERSIONS = st.none() | NUMBERS | MICROSECONDS.map(lambda at: MOMENTS + at) | st.just(UNREADABLE)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(VERSIONS, max_size=20))
def test_a_file_of_the_index_keeps_every_version(versions: list[Decimal | None]) -> None:
    kept = pl.Series("version", versions, dtype=VERSION)

    parts = split_versions(kept)

    assert [part.dtype for part in parts] == [pl.Int64, pl.Int32]
    joined = pl.DataFrame(parts).select(joined_versions("version", "version_rest"))["version"]
    assert joined.to_list() == kept.to_list()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.none() | NUMBERS, max_size=20) | st.lists(MICROSECONDS.map(lambda at: MOMENTS + at), max_size=20))
def test_numbers_of_64_bits_have_the_order_of_versions(versions: list[Decimal | None]) -> None:
    numbers = in_64_bits(pl.Series("version", versions, dtype=VERSION)).to_list()

    pairs = [(version, number) for version, number in zip(versions, numbers, strict=True) if version is not None]
    assert [number is None for number in numbers] == [version is None for version in versions]
    assert all((first < other) == (a < b) for first, a in pairs for other, b in pairs)


def test_texts_are_read_one_by_one_or_together_the_same() -> None:
    texts = ["7", "7.50", " 8", "1e3", "2025-03-01", "2025-03-01 10:00:00+02", "x", "NaN", "t5", "", "20250301"]

    together = versions_of_texts(pl.Series("version", [*texts, None]))

    assert together.to_list() == [*map(version_number, texts), None]


@pytest.mark.parametrize("text", ["1e1000000", "-1e999999999999999999", "1e-999999999"])
def test_a_number_without_measure_is_no_version(text: str) -> None:
    assert version_number(text) == version_number(Decimal(text)) == UNREADABLE


@pytest.mark.parametrize("text", ["294276-12-31T00:00:00Z", "294276-12-31", "294247-01-10 04:00:54.775808+00"])
def test_a_moment_beyond_64_bits_is_no_version_on_either_side(text: str) -> None:
    assert version_number(text) == UNREADABLE
    assert version_of_canonical(canonical_text(text, "timestamp"), "timestamp") == UNREADABLE
    assert versions_of_table(pl.Series(["t9224317929600000000"])).to_list() == [UNREADABLE]
    assert version_number("294247-01-10 04:00:54.775807+00") == MOMENTS + 2**63 - 1


def test_a_table_sends_moments_as_microseconds() -> None:
    moments = versions_of_table(pl.Series("version", ["t5", None, "no version"]))

    assert moments.to_list() == [MOMENTS + 5, None, UNREADABLE]
    assert versions_of_table(pl.Series("version", ["5.5", None, "no version"])).to_list() == [
        Decimal("5.5"),
        None,
        UNREADABLE,
    ]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (5, 5),
        (Decimal("5.50"), "5.5"),
        ("2025-03-01T02:00:00+02:00", "2025-03-01T00:00:00+00:00"),
        ("v6", "no version"),
        (None, None),
    ],
)
def test_a_version_is_shown_as_people_know_it(raw: object, shown: object) -> None:
    assert shown_version(version_number(raw)) == shown


@pytest.mark.parametrize(
    ("column_type", "unit"),
    [
        ("bigint", "1"),
        ("integer", "1"),
        ("numeric", "0"),
        ("numeric(8,2)", "0.01"),
        ("numeric(8,0)", "1"),
        ("numeric(8,-2)", "100"),
        ("numeric(30,12)", "0.000000001"),
        ("timestamp with time zone", "1"),
        ("timestamp(3) with time zone", "1000"),
        ("timestamp(0) without time zone", "1000000"),
        ("date", "86400000000"),
        ("text", "0"),
    ],
)
def test_versions_of_a_column_are_its_smallest_step_apart(column_type: str, unit: str) -> None:
    assert version_unit(column_type) == Decimal(unit)


def test_a_version_and_what_a_column_makes_of_it_are_one() -> None:
    record, second = version_number("2025-03-01T00:00:01.6Z"), version_unit("timestamp(0) with time zone")
    assert record is not None
    for held, is_one in (("01", True), ("02", True), ("00", False), ("03", False)):
        column = version_number(f"2025-03-01T00:00:{held}Z")
        assert column is not None
        assert are_one_version(record, column, second) is is_one
        assert is_multiple(column, second)
        assert is_later_version(record, column, second) is (held == "00")
        assert is_later_version(record, column) is (held in ("00", "01"))
    assert not is_multiple(record, second)
    assert is_multiple(record, version_unit("numeric"))
    day = version_number("2025-03-01")
    assert day is not None
    assert is_multiple(day, version_unit("date"))
