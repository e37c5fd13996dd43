"""Decide which findings are to be repaired, and which of them by taking copies back."""

from collections.abc import Iterable

from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import GAPS, Finding, Verdict


def is_to_repair(pipeline: Pipeline, finding: Finding) -> bool:
    """Return whether a finding is a gap, or of a key that has vanished and is to be brought back."""
    remedies = next((hop.remedies for hop in pipeline.hops if hop.name == finding.hop), None)
    is_wanted_back = remedies is not None and remedies.vanished is not Remedy.REPORT
    return finding.verdict.is_gap or (finding.verdict is Verdict.VANISHED and is_wanted_back)


def keys_to_reverse(pipeline: Pipeline, findings: Iterable[Finding]) -> set[str]:
    """Return the hashes of the keys that have copies to take back."""
    return {finding.key_hash for finding in findings if is_reversed(pipeline, finding)}


def is_reversed(pipeline: Pipeline, finding: Finding) -> bool:
    """Return whether the extra copies of a finding are to be taken back by an event."""
    remedies = next((hop.remedies for hop in pipeline.hops if hop.name == finding.hop), None)
    return remedies is not None and finding.verdict in GAPS and remedies.answer_to(finding.verdict) is Remedy.REVERSE
