"""Great Expectations, wrapped so that it cannot lie. Importing this loads none of it."""

from makewhole.gate.check import check_summaries, check_verdicts, unable
from makewhole.gate.summary import HopSummary, PointEvidence

__all__ = ["HopSummary", "PointEvidence", "check_summaries", "check_verdicts", "unable"]
