"""Test that a refusal is read back from the one text that the journal, the receipts and people get of it."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.refusal import Refusal, RefusalCode

pytestmark = pytest.mark.unit

CODED = [code for code in RefusalCode if code is not RefusalCode.OTHER]


@pytest.mark.parametrize("code", CODED)
@pytest.mark.parametrize("text", ["the row is gone", "store: its row has a value", "stale: said once more", "", ": "])
def test_a_refusal_with_a_code_is_read_back_from_its_text(code: RefusalCode, text: str) -> None:
    refusal = Refusal(code, text)

    assert str(refusal) == f"{code.value}: {text}"
    assert Refusal.of_text(str(refusal)) == refusal


@pytest.mark.parametrize(
    "text",
    [
        "the evidence names no committed record to redeliver",
        "its loader: it stands still",
        "stale",
        "stale:without a space",
        "Stale: in capitals",
        " stale: behind a space",
        ": ",
        "",
    ],
)
def test_a_text_that_begins_with_no_code_stays_as_it_is(text: str) -> None:
    assert Refusal.of_text(text) == Refusal(RefusalCode.OTHER, text)
    assert str(Refusal.of_text(text)) == text


@given(st.text() | st.tuples(st.sampled_from(RefusalCode), st.text()).map(lambda parts: f"{parts[0]}: {parts[1]}"))
def test_no_stored_text_changes_when_it_is_read_and_written_again(text: str) -> None:
    assert str(Refusal.of_text(text)) == text


def test_the_codes_are_the_words_that_stored_texts_begin_with() -> None:
    assert {code.value for code in RefusalCode} == {
        *(
            "stale",
            "arrived",
            "erased",
            "unfit",
            "twice",
            "not known",
            "disputed",
            "conflict",
            "in doubt",
            "accepted",
            "kept",
            "",
        ),
    }


def test_an_error_about_one_action_carries_its_refusal_and_says_its_text() -> None:
    refusal = Refusal(RefusalCode.STALE, "the row of this key changed")

    error = ActionRefusedError.of(RefusalCode.STALE, "the row of this key changed")

    assert (error.refusal, str(error)) == (refusal, "stale: the row of this key changed")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.refusal, str(again)) == (ActionRefusedError, refusal, str(error))


def test_any_other_refused_operation_is_a_refusal_of_the_action_that_needs_it() -> None:
    error = RefusedError("there is no table dw.departures")

    assert error.refusal == Refusal(RefusalCode.OTHER, "there is no table dw.departures")
