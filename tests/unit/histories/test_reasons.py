"""Test which reasons of windows the random histories let pass: those for which the runbook has a way out."""

from pathlib import Path

import pytest

from tests.histories.reasons import INCIDENTS, OVERTAKEN, PLANS, VERDICTS, is_known

pytestmark = pytest.mark.unit

RUNBOOK = Path(__file__).parents[3] / "docs" / "runbook.md"
MISSING = "outbox→orders: 2 keys missing, 0 allowed"
EXPIRED = "3 offsets of orders-1/0 ([4, 7)) were deleted before they could be read"
UNKNOWN_CONTENT = (
    "What they held is not known: a mirror or a backup of the topic can show it, and the keys in doubt that another "
    "place names are in `findings`"
)
GROUP = (
    "group loader has committed no offset in orders-1/0, where records wait from offset 0 on: it never consumed them, "
    "its offsets expired, or there is no such group"
)
OUT_OF_RANGE = (
    "group `loader` has committed offset 900 of orders-1/0, which is behind the end of its log (24), and records wait "
    "from offset 3 on: how far it has read is not known"
)
CORRECT = "Look with `kafka-consumer-groups.sh --describe --group loader`: correct consumer_group in the pipeline file"


@pytest.mark.parametrize(
    "reason",
    [
        MISSING,
        f"{MISSING}; orders→warehouse: 1 key duplicate, 0 allowed",
        f"{MISSING}. The plan was rejected: rejected by anna",
        f"{MISSING}. The plan was refused: 3 keys are more than the share of 1.0 of the window's 2 keys; find out",
        "not proven: orders→warehouse: nothing was judged: 1 key pending, 0 undecidable",
        f"partial: {EXPIRED}; {EXPIRED}. {UNKNOWN_CONTENT}. Certain all the same: outbox→orders: 1 missing",
        f"not proven: {GROUP}. {CORRECT}",
        f"not proven: {OUT_OF_RANGE}. {CORRECT}",
        "3 keys are still in flight, and window 2, which would have judged them, was compared already; run it again",
    ],
)
def test_a_reason_with_a_way_out_is_known(reason: str) -> None:
    assert is_known(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "it is not whole",
        f"{MISSING}; something else",
        f"{MISSING}. And something else",
        f"{MISSING}. The plan was rejected: who knows",
        "outbox→orders: 2 keys odd, 0 allowed",
        f"partial: {EXPIRED}",
        f"not proven: {GROUP}",
        f"partial: something happened. {UNKNOWN_CONTENT}",
    ],
)
def test_a_reason_without_a_way_out_is_not(reason: str) -> None:
    assert not is_known(reason)


def test_every_known_form_stands_in_the_runbook() -> None:
    text = " ".join(RUNBOOK.read_text().split())
    forms = [*VERDICTS, *(form.removeprefix("The plan was refused: ") for form in PLANS), *INCIDENTS, OVERTAKEN]
    forms = [form.removeprefix("The plan was rejected: ") for form in forms]
    assert [form for form in forms if form not in text] == []
