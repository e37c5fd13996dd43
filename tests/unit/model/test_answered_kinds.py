"""Test which findings a plan needs all of."""

import pytest

from makewhole.model.pipeline import Remedy
from makewhole.model.verdict import Verdict
from tests.unit.compensation.planning.drafted import pipeline_of

pytestmark = pytest.mark.unit

FIRST, SECOND = "ledger→topic", "topic→store"
REPORTED = dict.fromkeys(("missing", "duplicate", "mismatched"), Remedy.REPORT)


def test_a_pipeline_that_only_reports_answers_nothing() -> None:
    assert pipeline_of(**REPORTED).answered_kinds() == frozenset()


def test_what_has_a_remedy_is_answered_on_its_hop() -> None:
    pipeline = pipeline_of(**REPORTED | {"missing": Remedy.UPSERT, "vanished": Remedy.UPSERT})
    verdicts = Verdict.MISSING, Verdict.VANISHED
    assert pipeline.answered_kinds() == {(hop, verdict) for hop in (FIRST, SECOND) for verdict in verdicts}


def test_whom_a_redelivered_record_reaches_is_said_by_what_is_missing_on_every_hop() -> None:
    pipeline = pipeline_of(**REPORTED | {"mismatched": Remedy.REDELIVER})
    verdicts = Verdict.MISSING, Verdict.MISMATCHED
    assert pipeline.answered_kinds() == {(hop, verdict) for hop in (FIRST, SECOND) for verdict in verdicts}
