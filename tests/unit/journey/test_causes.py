import pytest

from makewhole.journey.causes import SENTENCES, told
from makewhole.model.verdict import Cause

pytestmark = pytest.mark.unit


def test_every_cause_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Cause)


def test_a_verdict_without_a_cause_or_with_a_stranger_is_told_as_it_is() -> None:
    assert told("matched", None) == "matched"
    assert told("missing", "of_tomorrow") == "missing: of_tomorrow"
    assert told("missing", "truncated") == (
        "missing: truncated, it was in the log, and was cut off when a new leader took over"
    )
