"""Test the chain of certificates when a revision ends, or its task is cleared, after later revisions have ended."""

from pathlib import Path

import pytest

from makewhole.journal.database import connect
from makewhole.journal.results import gate_answers, hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.configuration import judging_sha256
from tests.world.certified import CertifiedPipeline

pytestmark = pytest.mark.integration


@pytest.fixture
def demo(journal: str, tmp_path: Path) -> CertifiedPipeline:
    return CertifiedPipeline(journal=journal, folder=tmp_path)


def test_gaps_of_a_revision_that_ends_late_revoke_no_certificate_of_a_later_one(demo: CertifiedPipeline) -> None:
    slow = demo.judge(1, missing=1)
    demo.close(1, 2)

    closed = demo.certify(slow)

    assert (closed.state, closed.revoked) == (WindowState.GAPS, [])
    assert (demo.verify().code, demo.verify().problems) == (0, [])


def test_a_certificate_that_a_later_revision_revoked_is_not_given_out_again(demo: CertifiedPipeline) -> None:
    first = demo.judge(1)
    demo.certify(first)
    demo.close(1, 2, missing=1)

    closed = demo.certify(first)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert closed.reason == (
        "certificate 1 of this revision was revoked by entry 2 of the chain: revision 2 ended later, gaps (1 missing). "
        "The newest revision of the window says what is true"
    )
    assert demo.verify().code == 5
    demo.close(1, 3)
    assert demo.certify(first).state is WindowState.NOT_KNOWN
    assert demo.verify().code == 0


def test_a_certificate_falls_when_its_revision_is_verified_again_and_has_gaps(demo: CertifiedPipeline) -> None:
    older, first = demo.judge(1), demo.judge(1, 2)
    demo.certify(older)
    demo.certify(first)
    assert standing(demo.certify(first)) == 2
    verify_again(demo, first, missing=1)

    closed = demo.certify(first)

    assert (closed.state, closed.reason, closed.certificate) == (WindowState.GAPS, "1 missing", None)
    assert [entry.revokes for entry in closed.revoked] == [1, 2]
    assert (demo.certify(first).state, len(demo.entries())) == (WindowState.GAPS, 4)
    assert (demo.verify().code, demo.verify().problems) == (5, [])


@pytest.mark.parametrize("answer", [GateAnswer.PASS, GateAnswer.ERROR])
def test_a_certificate_stands_when_its_revision_is_verified_again_without_gaps(
    demo: CertifiedPipeline, answer: GateAnswer
) -> None:
    first = demo.judge(1)
    demo.certify(first)
    verify_again(demo, first, answer=answer)
    assert standing(demo.certify(first)) == 1
    assert demo.verify().code == 0


def standing(closed: ClosedWindow) -> int | None:
    """Return the number of the certificate by which a window is closed; None: it is not certified."""
    assert closed.state is not WindowState.CERTIFIED or closed.certificate is not None
    return None if closed.certificate is None else closed.certificate.ordinal


def verify_again(
    demo: CertifiedPipeline, window: Window, *, missing: int = 0, answer: GateAnswer = GateAnswer.PASS
) -> None:
    """Commit what the task `verify` commits, as it does when it is cleared."""
    digest = judging_sha256(demo.pipeline)
    report = GateReport(
        answer=GateAnswer.FAIL if missing else answer,
        planned=3,
        evaluated=3,
        failures=(f"{missing} missing",) if missing else (),
        document={"judging_sha256": digest},
    )
    counts = HopCounts(source_keys=5, matched=5 - missing, missing=missing)
    result = HopResult(hop="a→b", counts=counts, digest="again", files={"judging_sha256": digest})
    with connect(demo.journal) as journal:
        hop_results.commit_results(journal, window, hop_results.VERIFIED, [result])
        gate_answers.put_gate_report(journal, window, hop_results.VERIFIED, report)
