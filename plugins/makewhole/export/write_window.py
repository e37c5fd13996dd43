"""Write what proves a window, and what was found and done, into one archive for an auditor."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from makewhole.export import window_archive as archive
from makewhole.export.window_archive import ArchiveWriter, written_archive
from makewhole.journal import plan_progress, plans
from makewhole.journal.actions import copied_lines
from makewhole.journal.plans import StoredPlan
from makewhole.journal.results import gate_answers, snapshot_manifests
from makewhole.journal.retention import erasures
from makewhole.lake.storage import Storage
from makewhole.model.window import Window
from makewhole.signing.keys import KeyRing
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_chain import anchor_path
from makewhole.window.certifying.chain_evidence import read_evidence
from makewhole.window.configuration import plain


@dataclass(frozen=True, kw_only=True)
class WindowExport:
    """A revision of a window that is exported: its `document` and its `findings`, as commands print them, and the
    public keys that are believed here."""

    window: Window
    document: Mapping[str, Any]
    findings: Iterable[Mapping[str, Any]]
    ring: KeyRing


def export_window(journal: PgConnection, storage: Storage, export: WindowExport, path: Path) -> None:
    """Write the archive of a window, in one transaction of the journal.

    Raises:
        RefusedError: the file is there already, or cannot be written.
    """
    window = export.window
    with written_archive(path) as writer:
        writer.add_lines(archive.README, [_readme(window, path.name, export.ring).encode()])
        _add_chain(writer, journal, storage, export)
        writer.add_json(archive.WINDOW, dict(export.document))
        writer.add_json(archive.MANIFESTS, snapshot_manifests.snapshots(journal, window))
        writer.add_json(archive.GATE, plain(gate_answers.gate_reports(journal, window)))
        lines = (json.dumps(finding, ensure_ascii=False).encode() + b"\n" for finding in export.findings)
        writer.add_lines(archive.FINDINGS, lines)
        stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
        if stored is not None:
            writer.add_json(archive.PLAN, _plan(journal, stored))
            writer.add_lines(archive.ACTIONS, copied_lines(journal, stored.plan.id))
        signed = erasures.signed_erasures(journal, window.pipeline)
        if signed:
            writer.add_json(archive.ERASURES, [plain(erasure) for erasure in signed])
        if export.ring.keys:
            pems = [key.pem().encode() for _, key in sorted(export.ring.keys.items())]
            writer.add_lines(archive.PUBLIC_KEYS, pems)


def _add_chain(writer: ArchiveWriter, journal: PgConnection, storage: Storage, export: WindowExport) -> None:
    """Add the whole chain, each anchor as it stands beside the files, and the states of all windows."""
    window = export.window
    evidence = read_evidence(journal, storage, window.pipeline, export.ring)
    fields = ("ordinal", "number", "revision", "digest", "body", "previous", "sha256", "uri", "kind", "revokes")
    entries = [
        {name: getattr(entry, name) for name in (*fields, "signed_by", "signature")} for entry in evidence.entries
    ]
    writer.add_json(archive.CHAIN, {"pipeline": window.pipeline, "entries": entries})
    for entry in evidence.entries:
        content = storage.read_if_exists(anchor_path(window.pipeline, entry.ordinal))
        if content is not None:
            writer.add_lines(f"{archive.ANCHORS}{entry.ordinal:06d}.json", [content])
    writer.add_json(archive.STATES, [plain(end) for end in evidence.ends])


def _plan(journal: PgConnection, stored: StoredPlan) -> dict[str, Any]:
    """Return a plan with the answer of a person, its receipts, and what became of its actions."""
    plan = stored.plan
    answer = plans.approval_of(journal, plan.id)
    return {
        **plain(plan),
        "payload_sha256": stored.payload_sha256,
        "approval": None if answer is None else plain(answer),
        "receipts": [plain(receipt) for receipt in plan_progress.chunks_of(journal, plan.id)],
        "refused": [
            {"key": key, "target": target, "reason": str(refusal)}
            for key, target, refusal in plan_progress.refused_keys(journal, plan.id)
        ],
    }


def _readme(window: Window, name: str, ring: KeyRing) -> str:
    keys = ", ".join(sorted(ring.keys)) or "none was known where this was written"
    return f"""\
# {window.pipeline}, window {window.number}, revision {window.revision}

What was proven of this window, what was found in it, and what was done. To check it with makewhole
alone, without journal, connection or network:

    makewhole certificate verify --export {name} --public-key public.pem

`public.pem` has to come from whoever you trust for it. The one in this archive only says what to compare with it; its
keys are: {keys}.

| file | what |
|---|---|
| `{archive.CHAIN}` | every certificate and revocation of the pipeline, signed and linked by their hashes |
| `{archive.ANCHORS}` | the same entries as they stand beside the files, where the journal's writer does not reach |
| `{archive.STATES}` | the state of every revision of every window |
| `{archive.WINDOW}` | this revision: counts by verdict, incidents, gate, plan, certificate |
| `{archive.MANIFESTS}` | what was read: ranges, accounting, digests of files; the certificate has their hashes |
| `{archive.GATE}` | the gate's answers |
| `{archive.FINDINGS}` | every key that was not matched, with cause, evidence and outcome, a line each |
| `{archive.PLAN}` | the plan with its approval and receipts, if there was one |
| `{archive.ACTIONS}` | the very bytes that the plan's hash is over |
| `{archive.ERASURES}` | what erasures of keys on request changed, signed, if there were any |
| `{archive.CONTENTS}` | the SHA-256 of every file here |

The certificate vouches for ranges, counts, manifests, the plan and its approval, and for how many findings had which
verdict. It has no key and no value: for the text of `{archive.FINDINGS}` whoever exported it vouches.
"""
