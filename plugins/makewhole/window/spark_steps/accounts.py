"""Report in a sentence, with a line for each incident or failure, what a Spark step of a window has found."""

from collections.abc import Iterable, Mapping

from makewhole.journal import incidents
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.gate import GateReport
from makewhole.model.incident import IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.text import counted, is_hop_name
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.consumer_groups import OF_READERS


def snapshots_taken(journal: PgConnection, window: Window, points: Iterable[str]) -> str:
    """Report which snapshots were taken, which of them reuse what was read before, and what happened to the logs that
    they were taken of."""
    reused = snapshot_manifests.what_was_reused(snapshot_manifests.snapshots(journal, window))
    happened = [incident_sentence(incident) for incident in incidents.of(journal, window)]
    return _lines(f"snapshots taken: {', '.join(points) or 'none, they were there'}", [*reused, *happened])


def hops_judged(journal: PgConnection, window: Window, results: Mapping[str, HopResult]) -> str:
    """Report the counts of each hop and topic alone, which keys repeat, and what is wrong with where readers stand."""
    counts = [
        f"{hop}: {result.counts.matched} of {result.counts.source_keys} matched, {result.counts.pending} pending"
        if is_hop_name(hop)
        else f"{hop}: {counted(result.counts.source_keys, 'key')} in {counted(result.counts.source_rows, 'record')}"
        for hop, result in results.items()
    ]
    reported = (*OF_READERS, IncidentKind.REPEATED_KEYS)
    wrong = [incident_sentence(incident) for incident in incidents.of(journal, window) if incident.kind in reported]
    return _lines("; ".join(counts), wrong)


def gate_answered(report: GateReport) -> str:
    """Report the gate's answer and its failures."""
    return _lines(f"the gate says {report.answer.value}", report.failures)


def _lines(first: str, others: Iterable[str]) -> str:
    return "\n  ".join([first, *others])
