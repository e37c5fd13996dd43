"""Test the page on which another person says yes to an acceptance: what it counts, and that it shows no data."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from makewhole.compensation.acceptance.ask import Asked
from makewhole.compensation.acceptance.question import AwaitedAnswer, acceptance_page
from makewhole.model.acceptance import Acceptance, AcceptanceState, AcceptedFinding
from makewhole.model.verdict import Cause, Verdict
from makewhole.model.window import Window

pytestmark = pytest.mark.unit

AT = datetime(2026, 3, 7, 2, 0, tzinfo=UTC)
WORD = Acceptance(
    id="0123456789ab",
    pipeline="shop",
    window=3,
    revision=2,
    sha256="f" * 64,
    reason="the *loader* is gone",
    until=AT,
    findings=3,
    asked_by="anna",
    asked_at=AT,
    state=AcceptanceState.AWAITING_APPROVAL,
)

WINDOW = Window(
    pipeline="shop",
    number=3,
    revision=2,
    start=AT - timedelta(days=2),
    end=AT - timedelta(days=1),
    ranges={},
    opened_at=AT,
)
BEN = AwaitedAnswer(who="ben", until=AT + timedelta(hours=4))


def finding(key: str, verdict: Verdict, cause: Cause) -> AcceptedFinding:
    return AcceptedFinding(
        hop="orders→warehouse",
        key=key,
        key_hash="secret hash",
        verdict=verdict,
        cause=cause,
        fingerprint="p",
        held="h",
    )


def test_the_page_counts_says_why_and_who_may_and_shows_no_key() -> None:
    findings = [finding(f"secret {number}", Verdict.MISSING, Cause.LOST_AFTER_TOPIC) for number in range(2)]
    findings.append(finding("secret", Verdict.MISMATCHED, Cause.VALUE_DIFFERS))

    page = acceptance_page(
        Asked(acceptance=WORD, left=["1 finding cannot be accepted: pending"]), findings, WINDOW, BEN
    )

    assert page.subject == "Accept 3 findings of shop window 3"
    assert (
        "anna asks that 3 findings of window 3 (revision 2, from 2026-03-05 02:00 UTC up to 2026-03-06 02:00 UTC) of "
        "shop stay as they are, until 2026-03-07 02:00 UTC."
    ) in page.body
    assert "Why: the \\*loader\\* is gone" in page.body
    assert "- 2 findings on orders→warehouse: missing, lost_after_topic" in page.body
    assert "- 1 finding on orders→warehouse: mismatched, value_differs" in page.body
    assert "1 finding cannot be accepted: pending" in page.body
    assert (
        "Who may answer: ben. Who asked may not. Without an answer by 2026-03-07 06:00 UTC nothing is accepted."
    ) in page.body
    assert "when its key is changed, its time is over or the acceptance is revoked." in page.body
    assert "secret" not in page.body


def test_one_finding_without_an_end_stays_until_something_changes() -> None:
    word = replace(WORD, findings=1, until=None)
    findings = [finding("secret", Verdict.MISSING, Cause.LOST_AFTER_TOPIC)]

    page = acceptance_page(Asked(acceptance=word), findings, replace(WINDOW, start=None), BEN)

    assert (
        "anna asks that 1 finding of window 3 (revision 2, up to 2026-03-06 02:00 UTC) of shop stays as it is, without "
        "an end."
    ) in page.body
    assert "is open again when its key is changed or the acceptance is revoked." in page.body
