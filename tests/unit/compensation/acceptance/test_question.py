"""Test the page on which another person says yes to an acceptance: what it counts, and that it shows no data."""

from datetime import UTC, datetime

import pytest

from makewhole.compensation.acceptance.ask import Asked
from makewhole.compensation.acceptance.question import acceptance_page
from makewhole.model.acceptance import Acceptance, AcceptanceState, AcceptedFinding
from makewhole.model.verdict import Cause, Verdict

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
    found = [finding(f"secret {number}", Verdict.MISSING, Cause.LOST_AFTER_TOPIC) for number in range(2)]
    found.append(finding("secret", Verdict.MISMATCHED, Cause.VALUE_DIFFERS))

    page = acceptance_page(Asked(acceptance=WORD, left=["1 finding cannot be accepted: pending"]), found, "ben")

    assert page.subject == "Accept 3 findings of shop window 3"
    assert (
        "anna asks that 3 findings of window 3 (revision 2) of shop stay as they are, until 2026-03-07 02:00 UTC."
        in (page.body)
    )
    assert "Why: the \\*loader\\* is gone" in page.body
    assert "- 2 findings on orders→warehouse: missing, lost_after_topic" in page.body
    assert "- 1 finding on orders→warehouse: mismatched, value_differs" in page.body
    assert "1 finding cannot be accepted: pending" in page.body
    assert "Who may answer: ben. Who asked may not." in page.body
    assert "secret" not in page.body
