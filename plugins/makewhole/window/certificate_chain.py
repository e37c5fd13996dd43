"""Issue certificates and check their chain: each carries the hash of the one before it."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from makewhole.journal import incidents, plan_progress, plans, window_results
from makewhole.journal.window_results import Certificate, HopResult
from makewhole.lake.storage import Storage
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection


def final_results(journal: PgConnection, window: Window) -> dict[str, HopResult]:
    """Return the results by hop: of stage `verified` where there is one, of stage `reconciled` otherwise."""
    return window_results.results(journal, window, window_results.RECONCILED) | window_results.results(
        journal, window, window_results.VERIFIED
    )


def issue_certificate(journal: PgConnection, window: Window, storage: Storage) -> Certificate:
    """Write the certificate of a window to the storage and append it to the chain in the journal."""
    last = window_results.last_certificate(journal, window.pipeline)
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
        "how": _provenance(journal, window),
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
    window_results.insert_certificate(journal, window.pipeline, certificate)
    return certificate


def certified_content(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return what the digest covers: nothing of how it came about, so that revisions that prove the same are equal."""
    results = final_results(journal, window)
    return {
        "version": 1,
        "pipeline": window.pipeline,
        "window": window.number,
        "start": None if window.start is None else window.start.isoformat(),
        "end": window.end.isoformat(),
        "ranges": {point: [_range_fields(part) for part in parts] for point, parts in sorted(window.ranges.items())},
        "hops": {
            hop: {"source_keys": result.counts.source_keys, "digest": result.digest}
            for hop, result in sorted(results.items())
        },
        "handed_over": _keys_and_digest(window_results.handover_ids(journal, window)),
    }


def _range_fields(part: PartitionRange) -> dict[str, Any]:
    fields = {"topic": part.topic, "topic_id": part.topic_id, "partition": part.partition, "lo": part.lo, "hi": part.hi}
    return fields | ({"lineage": part.lineage} if part.lineage else {})


def _keys_and_digest(identities: Iterable[str]) -> dict[str, Any]:
    """Return the number of identities and the hash of their list as JSON, holding one of them at a time."""
    keys, digest = 0, hashlib.sha256(b"[")
    for keys, identity in enumerate(identities, start=1):
        digest.update(("," if keys > 1 else "").encode() + _json(identity))
    digest.update(b"]")
    return {"keys": keys, "digest": digest.hexdigest()}


def _provenance(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return how this revision was proven: accounting, counts by stage, gate reports, findings, plan and receipts."""
    findings = window_results.findings(journal, window)
    plan = _plan_with_receipts(journal, window)
    outcomes: dict[str, int] = {}
    for item in findings:
        name = f"{item.finding.verdict.value}: {item.outcome}"
        outcomes[name] = outcomes.get(name, 0) + 1
    manifests = window_results.snapshots(journal, window)
    return {
        "accounting": {name: manifest.get("accounting") for name, manifest in sorted(manifests.items())},
        "accounting_by_partition": {
            name: manifest["accounting_by_partition"]
            for name, manifest in sorted(manifests.items())
            if "accounting_by_partition" in manifest
        },
        "incidents": [asdict(one) for one in incidents.of(journal, window)],
        "counts": {
            stage: {hop: vars(result.counts) for hop, result in window_results.results(journal, window, stage).items()}
            for stage in (window_results.RECONCILED, window_results.VERIFIED)
        },
        "gate": {
            stage: {"answer": report.answer.value, "evaluated": report.evaluated, "planned": report.planned}
            for stage, report in window_results.gate_reports(journal, window).items()
        },
        "findings": dict(sorted(outcomes.items())),
        "waiting": {
            hop: {"keys": waiting.keys, "since": waiting.since.isoformat()}
            for hop, waiting in window_results.waiting_by_hop(journal, window).items()
        },
        "plan": plan,
    }


def _plan_with_receipts(journal: PgConnection, window: Window) -> dict[str, Any] | None:
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is None:
        return None
    receipts = plan_progress.chunks_of(journal, stored.plan.id)
    return {
        "id": stored.plan.id,
        "sha256": stored.plan.sha256,
        "actions": dict(stored.plan.counts),
        "receipts": [asdict(receipt) for receipt in receipts],
    }


def _sha256(content: Any) -> str:
    return hashlib.sha256(_json(content)).hexdigest()


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def chain_problems(certificates: list[Certificate]) -> list[str]:
    """Return the problems of a chain of certificates, given oldest first; none for a sound one."""
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
