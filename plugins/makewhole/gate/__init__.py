"""Great Expectations, wrapped so that it cannot lie. Importing this costs nothing: the library loads when it is asked."""

from makewhole.gate.check import check_summaries, check_verdicts, unable
from makewhole.gate.summary import HopSummary, PointEvidence

__all__ = ["HopSummary", "PointEvidence", "check_summaries", "check_verdicts", "unable"]
