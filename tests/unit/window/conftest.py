"""Fake what the steps of a window committed."""

import pytest

from makewhole.journal.results.hop_results import RECONCILED
from makewhole.model.gate import GateAnswer
from tests.unit.window.committed_evidence import WHOLE, CommittedEvidence, gate


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> CommittedEvidence:
    """The evidence of a window that is whole."""
    evidence = CommittedEvidence(
        results={RECONCILED: {"a→b": WHOLE, "b→c": WHOLE}}, gates={RECONCILED: gate(GateAnswer.PASS)}
    )
    evidence.enter(monkeypatch)
    return evidence
