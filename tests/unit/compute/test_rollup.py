"""Check the counts and the digest of buckets."""

import random
from dataclasses import fields

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute import rollup
from makewhole.model.verdict import HopCounts, Verdict
from tests.world.examples import examples

pytestmark = pytest.mark.unit

ROWS = st.lists(
    st.tuples(
        st.integers(0, 2**128 - 1).map(lambda number: f"{number:032x}"),
        st.sampled_from([str(verdict) for verdict in Verdict]),
        st.none() | st.integers(0, 2**64 - 1),
    ),
    unique_by=lambda row: row[0],
    max_size=30,
)


def frame(rows: list[tuple[str, str, int | None]]) -> pl.DataFrame:
    schema = {"key_hash": pl.String, "verdict": pl.String, "row_hash": pl.UInt64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@settings(max_examples=examples(100), deadline=None)
@given(ROWS, st.integers(0, 30), st.randoms(use_true_random=False))
def test_the_digest_depends_on_the_set_and_not_on_order_or_buckets(
    rows: list[tuple[str, str, int | None]], cut: int, chance: random.Random
) -> None:
    whole = rollup.digest(frame(rows))
    shuffled = chance.sample(rows, len(rows))

    assert rollup.digest(frame(shuffled)) == whole
    assert rollup.add_digests([rollup.digest(frame(shuffled[:cut])), rollup.digest(frame(shuffled[cut:]))]) == whole
    assert 0 <= whole < 2**128


@settings(max_examples=examples(100), deadline=None)
@given(ROWS.filter(bool), st.data())
def test_any_change_of_a_key_changes_the_digest(rows: list[tuple[str, str, int | None]], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    key_hash, verdict, row_hash = rows[at]
    other = data.draw(
        st.sampled_from(
            [
                ("0" * 31 + ("1" if key_hash[-1] == "0" else "0"), verdict, row_hash),
                (key_hash, "matched" if verdict != "matched" else "missing", row_hash),
                (key_hash, verdict, 1 if row_hash is None else None),
            ]
        )
    )

    assert rollup.digest(frame([*rows[:at], other, *rows[at + 1 :]])) != rollup.digest(frame(rows))


def test_the_digest_is_pinned() -> None:
    rows: list[tuple[str, str, int | None]] = [
        ("06b05ab6733a618578af5f94892f3950", "matched", 18446744073709551615),
        ("0" * 32, "missing", None),
    ]

    assert rollup.digest_text(rollup.digest(frame(rows))) == "d97128a92e46585468dfbe6d6491ba88"
    assert rollup.digest_text(rollup.digest(frame([]))) == "0" * 32


JUDGED = st.lists(
    st.tuples(st.sampled_from(list(Verdict)), st.integers(2, 5)).flatmap(
        lambda drawn: st.just(
            {
                "verdict": str(drawn[0]),
                "in_source": drawn[0] is not Verdict.UNEXPECTED,
                "target_copies": drawn[1] if drawn[0] is Verdict.DUPLICATE else 1,
            }
        )
    ),
    max_size=40,
)
SCHEMA = {"verdict": pl.String, "in_source": pl.Boolean, "target_copies": pl.Int64}


@settings(max_examples=examples(100), deadline=None)
@given(JUDGED, st.integers(0, 40))
def test_counts_add_up_over_buckets_and_account_for_every_key_of_the_source(
    judged: list[dict[str, object]], cut: int
) -> None:
    whole = rollup.counts(pl.DataFrame(judged, schema=SCHEMA), 7, 9)
    parts = [pl.DataFrame(rows, schema=SCHEMA) for rows in (judged[:cut], judged[cut:])]

    assert rollup.add_counts([rollup.counts(parts[0], 3, 4), rollup.counts(parts[1], 4, 5)]) == whole
    known = whole.matched + whole.missing + whole.mismatched + whole.conflict + whole.duplicate
    known += whole.vanished + whole.erased
    assert whole.source_keys == known + whole.pending + whole.undecidable + whole.before_baseline
    assert whole.source_keys + whole.unexpected == len(judged)
    assert whole.extra_copies == sum(int(str(row["target_copies"])) - 1 for row in judged)


def test_no_buckets_count_nothing() -> None:
    empty = rollup.add_counts([HopCounts()])

    assert all(getattr(empty, field.name) == 0 for field in fields(HopCounts))
