"""Write in a certificate what was proven, what decided it, and how it came about."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from makewhole.journal import acceptances, incidents, plan_progress, plans, windows
from makewhole.journal.findings import window_findings
from makewhole.journal.results import gate_answers, handover_keys, hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import PartitionRange, Window
from makewhole.signing.keys import canonical_bytes, sha256_of
from makewhole.sql import PgConnection
from makewhole.window.configuration import configuration_document, judging_sha256, plain
from makewhole.window.reach.limits import reach_document

FORMAT = 3
"""The format of what is signed. 1 were the certificates without a signature, 2 those that do not say their reach."""


def final_results(journal: PgConnection, window: Window) -> dict[str, HopResult]:
    """Return the results by hop: of stage `verified` where there is one, of stage `reconciled` otherwise."""
    return hop_results.results(journal, window, hop_results.RECONCILED) | hop_results.results(
        journal, window, hop_results.VERIFIED
    )


def certificate_body(journal: PgConnection, pipeline: Pipeline, window: Window) -> dict[str, Any]:
    """Return what a certificate says of a revision, without its place in the chain. Every number in it is whole."""
    content, accepted = certified_content(journal, window), accepted_document(journal, window)
    body = {
        **content,
        "format": FORMAT,
        "kind": "certificate",
        "digest": sha256_of(content),
        "revision": window.revision,
        "opened_at": window.opened_at.isoformat(),
        "issued_at": datetime.now(UTC).isoformat(),
        "reach": reach_document(journal, pipeline, window, final_results(journal, window)),
        **({"accepted": accepted} if accepted else {}),
        "older_open": vars(windows.older_open(journal, window.pipeline, window.number)),
        "decided_by": _decided_by(journal, pipeline, window),
        "how": _provenance(journal, window),
    }
    signable: dict[str, Any] = plain(body)
    return signable


def certified_content(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return what the digest covers: nothing of how it came about, so that revisions that prove the same are equal."""
    results, accepted = final_results(journal, window), acceptances.count_accepted(journal, window)
    return {
        "version": 1,
        "pipeline": window.pipeline,
        "window": window.number,
        "start": None if window.start is None else window.start.isoformat(),
        "end": window.end.isoformat(),
        "ranges": {point: [_range_fields(part) for part in parts] for point, parts in sorted(window.ranges.items())},
        "hops": {
            hop: {
                "source_keys": result.counts.source_keys,
                "digest": result.digest,
                **_set_apart(result),
                **({"accepted": accepted[hop]} if hop in accepted else {}),
            }
            for hop, result in sorted(results.items())
        },
        "handed_over": _keys_and_digest(handover_keys.handover_ids(journal, window)),
    }


def _set_apart(result: HopResult) -> dict[str, int]:
    """Return how many keys have vanished, were erased or are in conflict, where any are: none is vouched for."""
    counts = {"vanished": result.counts.vanished, "erased": result.counts.erased, "conflict": result.counts.conflict}
    return {name: count for name, count in counts.items() if count}


def accepted_document(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return how many findings of a revision stay as they are, and by whose word: who asked, who said yes, why, until
    when, and the digest of the hops and hashes of their keys; empty where none is accepted."""
    words = acceptances.standing_words(journal, window)
    if not words:
        return {}
    return {
        "findings": sum(word.findings for word in words),
        "acceptances": [
            {
                "id": word.id,
                "sha256": word.sha256,
                "by": word.decided_by,
                "at": word.decided_at.isoformat(),
                "asked_by": word.asked_by,
                "asked_at": word.asked_at.isoformat(),
                "reason": word.reason,
                "until": None if word.until is None else word.until.isoformat(),
                **_findings_and_digest(word.identities),
            }
            for word in words
        ],
    }


def _findings_and_digest(identities: Iterable[str]) -> dict[str, Any]:
    counted = _keys_and_digest(identities)
    return {"findings": counted["keys"], "digest": counted["digest"]}


def _range_fields(part: PartitionRange) -> dict[str, Any]:
    fields = {"topic": part.topic, "topic_id": part.topic_id, "partition": part.partition, "lo": part.lo, "hi": part.hi}
    return fields | ({"lineage": part.lineage} if part.lineage else {})


def _keys_and_digest(identities: Iterable[str]) -> dict[str, Any]:
    """Return the number of identities and the hash of their list as JSON, holding one of them at a time."""
    keys, digest = 0, hashlib.sha256(b"[")
    for keys, identity in enumerate(identities, start=1):
        digest.update(("," if keys > 1 else "").encode() + canonical_bytes(identity))
    digest.update(b"]")
    return {"keys": keys, "digest": digest.hexdigest()}


def _decided_by(journal: PgConnection, pipeline: Pipeline, window: Window) -> dict[str, Any]:
    """Return everything that decided: the version, the configuration as a whole and as each step had it, the digests
    of the snapshots' manifests (which hold those of their files), and of the results."""
    manifests = snapshot_manifests.snapshots(journal, window)
    return {
        "makewhole": version("makewhole"),
        "configuration": configuration_document(pipeline),
        "judging_sha256": judging_sha256(pipeline),
        "judging_sha256_by_step": judged_with(journal, window),
        "snapshots": {
            point: {"manifest_sha256": sha256_of(manifest), "files": len(manifest.get("sha256", ()))}
            for point, manifest in sorted(manifests.items())
        },
    }


def judged_with(journal: PgConnection, window: Window) -> dict[str, str]:
    """Return the digest of the judging configuration that each step worked with, of the steps that recorded it."""
    digests = {"open_window": windows.configuration(journal, window).get("judging_sha256")}
    for point, manifest in sorted(snapshot_manifests.snapshots(journal, window).items()):
        digests[f"snapshot of {point}"] = manifest.get("judging_sha256")
    for hop, result in sorted(hop_results.results(journal, window).items()):
        digests[f"reconcile of {hop}"] = result.files.get("judging_sha256")
    for stage, report in sorted(gate_answers.gate_reports(journal, window).items()):
        digests[f"gate, {stage}"] = report.document.get("judging_sha256")
    return {step: digest for step, digest in digests.items() if digest is not None}


def _left_out(journal: PgConnection, window: Window) -> dict[str, int]:
    by_verdict: Counter[str] = Counter()
    for (_, verdict), keys in window_findings.count_left_out(journal, window).items():
        by_verdict[verdict.value] += keys
    return dict(by_verdict)


def _provenance(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return how this revision was proven: accounting, counts by stage, gate reports, findings, plan and receipts."""
    outcomes = {
        f"{verdict}: {outcome}": count
        for (verdict, outcome), count in window_findings.count_outcomes(journal, window).items()
    }
    manifests, left_out = snapshot_manifests.snapshots(journal, window), _left_out(journal, window)
    return {
        "accounting": {name: manifest.get("accounting") for name, manifest in sorted(manifests.items())},
        "accounting_by_partition": {
            name: manifest["accounting_by_partition"]
            for name, manifest in sorted(manifests.items())
            if "accounting_by_partition" in manifest
        },
        "incidents": [_without_keys(incident) for incident in incidents.of(journal, window)],
        **({"looked_at": looked} if (looked := snapshot_manifests.looked_at(manifests)) else {}),
        "counts": {
            stage: {hop: vars(result.counts) for hop, result in hop_results.results(journal, window, stage).items()}
            for stage in (hop_results.RECONCILED, hop_results.VERIFIED)
        },
        "gate": {
            stage: {"answer": report.answer.value, "evaluated": report.evaluated, "planned": report.planned}
            for stage, report in gate_answers.gate_reports(journal, window).items()
        },
        "findings": dict(sorted(outcomes.items())),
        **({"findings_left_out": left_out} if left_out else {}),
        "waiting": {
            hop: {"keys": waiting.keys, "since": waiting.since.isoformat()}
            for hop, waiting in handover_keys.waiting_by_hop(journal, window).items()
        },
        "plan": _plan_with_receipts(journal, window),
    }


def _without_keys(incident: Incident) -> dict[str, Any]:
    """Return an incident without the keys that it names: a certificate is for ever, and keys may have to be erased."""
    document = asdict(incident)
    named = [
        {name: part for name, part in entry.items() if name != "key"} for entry in incident.detail.get("first", ())
    ]
    return document | ({"detail": {**incident.detail, "first": named}} if named else {})


def _plan_with_receipts(journal: PgConnection, window: Window) -> Mapping[str, Any] | None:
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is None:
        return None
    receipts = plan_progress.chunks_of(journal, stored.plan.id)
    answer = plans.approval_of(journal, stored.plan.id)
    return {
        "id": stored.plan.id,
        "sha256": stored.plan.sha256,
        "actions": dict(stored.plan.counts),
        "approval": None if answer is None else {"sha256": answer.sha256, "decision": answer.decision, "by": answer.by},
        "receipts": [asdict(receipt) for receipt in receipts],
    }
