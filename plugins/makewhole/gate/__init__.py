"""Check a window with Great Expectations, and count that it checked everything. Importing this does not load it."""

from makewhole.gate.check import check_summaries, check_verdicts, error_report
from makewhole.gate.expectations import load_meanwhile
from makewhole.gate.few_rows import KeyedRows
from makewhole.gate.frame import KeyedFrames, NamedFiles
from makewhole.gate.summary import HopSummary, PointEvidence

__all__ = [
    "HopSummary",
    "KeyedFrames",
    "KeyedRows",
    "NamedFiles",
    "PointEvidence",
    "check_summaries",
    "check_verdicts",
    "error_report",
    "load_meanwhile",
]
