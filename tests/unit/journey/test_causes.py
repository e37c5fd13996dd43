import pytest

from makewhole.journey.causes import CAUSE_MEANINGS, explained_verdict
from makewhole.model.verdict import Cause

pytestmark = pytest.mark.unit


def test_every_cause_has_a_sentence() -> None:
    assert set(CAUSE_MEANINGS) == set(Cause)


def test_a_verdict_without_a_cause_or_with_an_unknown_one_is_reported_as_it_is() -> None:
    assert explained_verdict("matched", None) == "matched"
    assert explained_verdict("missing", "of_tomorrow") == "missing: of_tomorrow"
    assert explained_verdict("missing", "truncated") == (
        "missing: truncated, it was in the log, and was cut off when a new leader took over"
    )
