"""Test that the gate in plain Python, which most tests of windows ask, answers as Great Expectations does."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.gate.expectations import SuiteRun, run_on_pandas, run_on_rows
from makewhole.gate.planned_expectation import HIGHEST, Number, Role
from makewhole.gate.suite import HopSuite, frame_suite
from makewhole.gate.summary import HopSummary
from makewhole.model.verdict import Verdict
from tests.integration.gate.conftest import HOPS
from tests.world.plain_gate import evaluate_plainly

pytestmark = pytest.mark.integration

TIMES = settings(max_examples=20, deadline=None)
NUMBERS = st.builds(
    Number,
    name=st.sampled_from(["rows", "keys", "spans"]),
    value=st.none() | st.integers(-2, 3) | st.sampled_from([HIGHEST, HIGHEST - 1]),
    at_least=st.integers(0, 2),
    at_most=st.integers(0, 3) | st.just(HIGHEST),
    sentence=st.just(""),
    role=st.sampled_from(Role),
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from([*HOPS, "no hop", None]),
        st.sampled_from([*(f"{number:032x}" for number in range(4)), None]),
        st.sampled_from([*(verdict.value for verdict in Verdict), "fine", None]),
    ),
    max_size=6,
)


def both(ask: Any) -> tuple[Any, Any]:
    """Ask the library, and then without it."""
    of_library = ask()
    with pytest.MonkeyPatch.context() as patch:
        evaluate_plainly(patch)
        return of_library, ask()


@TIMES
@given(st.lists(st.lists(NUMBERS, max_size=3, unique_by=lambda hop: hop.name), max_size=3))
def test_numbers_have_the_same_outcomes(suites: Sequence[Sequence[Number]]) -> None:
    named = [HopSuite(hop=f"hop {at}", numbers=tuple(numbers)) for at, numbers in enumerate(suites)]
    of_library, plain = both(lambda: run_on_rows(named))
    assert of_library == plain


def test_verdicts_have_the_same_outcomes(summaries: list[HopSummary]) -> None:
    @TIMES
    @given(ROWS)
    def check(rows: Sequence[tuple[str | None, str | None, str | None]]) -> None:
        frame = pl.DataFrame(rows, schema=dict.fromkeys(("hop", "key_hash", "verdict"), pl.String), orient="row")
        frame = frame.with_columns(pl.concat_str("key_hash", pl.lit(" "), "hop").alias("hop_key"))

        def ask() -> SuiteRun:
            return run_on_pandas("verdicts", frame.to_pandas(), frame_suite(summaries))

        of_library, plain = both(ask)
        assert of_library == plain

    check()
