"""The last step: close the window with a certificate, or say why it stays open.

Asks only the journal. Whatever is not there did not happen: a step that failed leaves no trace, so the window cannot be
certified by mistake.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from makewhole.journal import evidence, incidents, plans, windows
from makewhole.journal.evidence import Certificate, HopResult, JudgedFinding
from makewhole.lake.storage import Storage
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.incident import Incident
from makewhole.model.incident_text import settled_by, told
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import GAPS
from makewhole.model.window import PartitionRange, Window, WindowState
from makewhole.sql import PgConnection

_TOLD_AT_MOST = 5


@dataclass(frozen=True, kw_only=True)
class Closed:
    """How the window ended. `reason` is None only for a certified one."""

    state: WindowState
    reason: str | None
    certificate: Certificate | None = None


def certify(journal: PgConnection, pipeline: Pipeline, window: Window, storage: Storage) -> Closed:
    """Decide the state of a revision from what the steps committed, and issue the certificate when it is certified.

    Asked again, the answer that was given stays, and so does what an undo made of it since.
    """
    given = evidence.certificate_of(journal, window)
    if given is not None:
        now = windows.load(journal, window.pipeline, window.number, window.revision)
        is_certified = now.state is WindowState.CERTIFIED
        return Closed(state=now.state, reason=now.reason, certificate=given if is_certified else None)
    state, reason = decide(journal, pipeline, window)
    certificate = None
    if state is WindowState.CERTIFIED:
        windows.lock_pipeline(journal, pipeline.name)
        certificate = _issue(journal, window, storage)
    windows.close(journal, window, state, reason)
    return Closed(state=state, reason=reason, certificate=certificate)


def decide(journal: PgConnection, pipeline: Pipeline, window: Window) -> tuple[WindowState, str | None]:
    """The state that the committed evidence allows, with the reason when it is not `certified`."""
    results, gates = final_results(journal, window), evidence.gate_reports(journal, window)
    if set(results) != {hop.name for hop in pipeline.hops}:
        return WindowState.ERROR, "the comparison did not finish; see the failed task of this run"
    first = gates.get(evidence.RECONCILED)
    if first is None or first.answer is GateAnswer.ERROR:
        said = "; ".join(first.failures) if first else "it was not asked; see the failed task of this run"
        return WindowState.ERROR, f"the gate could not answer: {said}"
    last = gates.get(evidence.VERIFIED, first)
    if last.answer is GateAnswer.ERROR:
        return WindowState.ERROR, f"the gate could not answer after compensation: {'; '.join(last.failures)}"
    blocking = [one for one in incidents.of(journal, window) if one.blocks(pipeline)]
    if blocking:
        return WindowState.NOT_KNOWN, _in_doubt(blocking, results)
    if last.answer is not GateAnswer.PASS:
        return _not_certified(journal, window, results, last)
    pending = sum(result.counts.pending for result in results.values())
    if pending and windows.is_reconciled(journal, window.pipeline, window.number + 1):
        return WindowState.NOT_KNOWN, (
            f"{pending} keys are still in flight, and window {window.number + 1}, which would have judged them, was "
            "compared already; run this window again when they had time to arrive"
        )
    return WindowState.CERTIFIED, None


def _in_doubt(blocking: Sequence[Incident], results: Mapping[str, HopResult]) -> str:
    """What happened to the logs, what would settle it, and what was found for certain all the same."""
    kind = "partial" if any(one.is_partial for one in blocking) else "not proven"
    sentences = [told(one) for one in blocking]
    more = [f"{len(sentences) - _TOLD_AT_MOST} more such places"] if len(sentences) > _TOLD_AT_MOST else []
    what_to_do = dict.fromkeys(settled_by(one) for one in blocking)
    gaps = [
        f"{hop}: {count} {verdict.value}"
        for hop, result in sorted(results.items())
        for verdict in GAPS
        if (count := getattr(result.counts, verdict.value))
    ]
    return ". ".join(
        [
            f"{kind}: {'; '.join([*sentences[:_TOLD_AT_MOST], *more])}",
            *(f"{sentence[0].upper()}{sentence[1:]}" for sentence in what_to_do),
            *([f"Certain all the same: {', '.join(gaps)}"] if gaps else []),
        ]
    )


def _not_certified(
    journal: PgConnection, window: Window, results: Mapping[str, HopResult], gate: GateReport
) -> tuple[WindowState, str]:
    remaining = sum(getattr(result.counts, verdict.value) for result in results.values() for verdict in GAPS)
    why = "; ".join(gate.failures)
    if not remaining:
        return WindowState.NOT_KNOWN, f"not proven: {why}"
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is not None and stored.plan.reason and stored.plan.state.value in ("refused", "rejected"):
        why = f"{why}. The plan was {stored.plan.state.value}: {stored.plan.reason}"
    if windows.is_plan_only(journal, window):
        why = f"{why}. Only a plan was asked for"
    return WindowState.GAPS, why


def final_results(journal: PgConnection, window: Window) -> dict[str, HopResult]:
    """The results as they are now: verified where a hop was verified, as reconciled otherwise."""
    return evidence.results(journal, window, evidence.RECONCILED) | evidence.results(journal, window, evidence.VERIFIED)


def _issue(journal: PgConnection, window: Window, storage: Storage) -> Certificate:
    last = evidence.last_certificate(journal, window.pipeline)
    ordinal, previous = (last[0] + 1, last[1]) if last else (1, None)
    content = certified_content(journal, window)
    digest = _sha256(content)
    body = {
        **content,
        "digest": digest,
        "ordinal": ordinal,
        "previous": previous,
        "revision": window.revision,
        "opened_at": window.opened_at.isoformat(),
        "issued_at": datetime.now(UTC).isoformat(),
        "how": _how(journal, window),
    }
    sha256 = _sha256(body)
    uri = storage.write_bytes(
        f"{window.pipeline}/certificates/{ordinal:06d}-window-{window.number}-revision-{window.revision}.json",
        json.dumps({**body, "sha256": sha256}, indent=2, sort_keys=True, ensure_ascii=False).encode(),
    )
    certificate = Certificate(
        ordinal=ordinal,
        number=window.number,
        revision=window.revision,
        digest=digest,
        body=body,
        previous=previous,
        sha256=sha256,
        uri=uri,
    )
    evidence.insert_certificate(journal, window.pipeline, certificate)
    return certificate


def certified_content(journal: PgConnection, window: Window) -> dict[str, Any]:
    """What is certified, and nothing of how it came about: the same for every revision that proves the same."""
    results = final_results(journal, window)
    handed_over = [item for item in evidence.findings(journal, window) if item.finding.verdict.value == "pending"]
    return {
        "version": 1,
        "pipeline": window.pipeline,
        "window": window.number,
        "start": None if window.start is None else window.start.isoformat(),
        "end": window.end.isoformat(),
        "ranges": {point: [_place(part) for part in parts] for point, parts in sorted(window.ranges.items())},
        "hops": {
            hop: {"source_keys": result.counts.source_keys, "digest": result.digest}
            for hop, result in sorted(results.items())
        },
        "handed_over": {"keys": len(handed_over), "digest": _sha256(sorted(_name(item) for item in handed_over))},
    }


def _place(part: PartitionRange) -> dict[str, Any]:
    place = {"topic": part.topic, "topic_id": part.topic_id, "partition": part.partition, "lo": part.lo, "hi": part.hi}
    return place | ({"lineage": part.lineage} if part.lineage else {})


def _name(item: JudgedFinding) -> str:
    return f"{item.finding.hop}|{item.finding.key_hash}"


def _how(journal: PgConnection, window: Window) -> dict[str, Any]:
    """How this revision got there: counts before and after, what the gate said, the plan with its receipts."""
    findings = evidence.findings(journal, window)
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    plan = None
    if stored is not None:
        receipts = plans.chunks_of(journal, stored.plan.id)
        plan = {
            "id": stored.plan.id,
            "sha256": stored.plan.sha256,
            "actions": dict(stored.plan.counts),
            "receipts": [asdict(receipt) for receipt in receipts],
        }
    outcomes: dict[str, int] = {}
    for item in findings:
        name = f"{item.finding.verdict.value}: {item.outcome}"
        outcomes[name] = outcomes.get(name, 0) + 1
    manifests = evidence.snapshots(journal, window)
    return {
        "accounting": {name: manifest.get("accounting") for name, manifest in sorted(manifests.items())},
        "accounting_by_partition": {
            name: manifest["accounting_by_partition"]
            for name, manifest in sorted(manifests.items())
            if "accounting_by_partition" in manifest
        },
        "incidents": [asdict(one) for one in incidents.of(journal, window)],
        "counts": {
            stage: {hop: vars(result.counts) for hop, result in evidence.results(journal, window, stage).items()}
            for stage in (evidence.RECONCILED, evidence.VERIFIED)
        },
        "gate": {
            stage: {"answer": report.answer.value, "evaluated": report.evaluated, "planned": report.planned}
            for stage, report in evidence.gate_reports(journal, window).items()
        },
        "findings": dict(sorted(outcomes.items())),
        "plan": plan,
    }


def _sha256(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def chain_problems(certificates: list[Certificate]) -> list[str]:
    """What is wrong with a chain of certificates, oldest first; nothing for a sound one."""
    problems, previous = [], None
    for at, certificate in enumerate(certificates, start=1):
        name = f"certificate {certificate.ordinal} (window {certificate.number})"
        if certificate.ordinal != at:
            problems.append(f"{name}: number {at} of the chain is missing")
        if certificate.previous != previous or certificate.body.get("previous") != previous:
            problems.append(f"{name}: does not continue the one before it")
        is_as_issued = _sha256(dict(certificate.body)) == certificate.sha256
        if not is_as_issued or certificate.body.get("digest") != certificate.digest:
            problems.append(f"{name}: its content was changed after it was issued")
        previous = certificate.sha256
    return problems
