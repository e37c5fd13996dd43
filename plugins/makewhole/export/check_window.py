"""Check the archive of a window by itself: with public keys, and without journal, storage and connections."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from makewhole.compensation.freezing.plan_hash import plan_hash
from makewhole.export import window_archive as archive
from makewhole.export.window_archive import ReadArchive, read_archive
from makewhole.journal.certificates import ChainEntry, EntryKind, RevisionEnd
from makewhole.journal.retention.erasures import SignedErasure
from makewhole.model.errors import CorruptionError
from makewhole.signing.keys import KeyRing, sha256_of
from makewhole.window.certifying.certificate_check import ChainEvidence, CheckedChain, check_chain, read_anchor
from makewhole.window.certifying.erased_contents import ErasedContents, contents_of

_OF_ANOTHER_FORM = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class CheckedExport:
    """The result: the chain, and the certificate that stands for the window (None: none does). `problems` are those of
    the archive itself; where a file of it is not as it was written, nothing else is known."""

    chain: CheckedChain
    evidence: ChainEvidence
    pipeline: str | None = None
    window: int | None = None
    revision: int | None = None
    certificate: ChainEntry | None = None
    problems: list[str] = field(default_factory=list)


def check_export(path: Path, ring: KeyRing) -> CheckedExport:
    """Check an archive.

    Raises:
        RefusedError: the file is no archive of a window.
        CorruptionError: a part of it cannot be read.
    """
    with read_archive(path) as opened:
        problems = list(opened.problems())
        if problems:  # nothing of it is worth to be read
            nothing = ChainEvidence(entries=(), anchors=(), ends=(), ring=ring)
            return CheckedExport(evidence=nothing, chain=check_chain(nothing), problems=problems)
        try:
            evidence = _evidence(opened, ring)
            document = opened.json(archive.WINDOW)
            pipeline, window, revision = document["pipeline"], document["window"], document["revision"]
            certificate = _standing(evidence, window, revision)
            problems += _other_pipeline(evidence, pipeline)
            erased = _erased(opened, pipeline, ring)
            problems += erased.problems
            problems += _plan_problems(opened, pipeline, window, certificate, erased)
            if certificate is not None:
                problems += _manifest_problems(opened, certificate)
                problems += _finding_problems(opened, certificate)
            chain = check_chain(evidence)
        except (*_OF_ANOTHER_FORM, msgspec.ValidationError) as error:
            raise CorruptionError(
                f"{path.name}: is not as an archive of a window is written ({type(error).__name__})"
            ) from error
    return CheckedExport(
        pipeline=pipeline,
        window=window,
        revision=revision,
        chain=chain,
        evidence=evidence,
        certificate=certificate,
        problems=problems,
    )


def _evidence(opened: ReadArchive, ring: KeyRing) -> ChainEvidence:
    entries = msgspec.convert(opened.json(archive.CHAIN)["entries"], list[ChainEntry])
    names = sorted(name for name in opened.names if name.startswith(archive.ANCHORS))
    anchors = [
        read_anchor(name, int(name.removeprefix(archive.ANCHORS).removesuffix(".json")), opened.bytes(name))
        for name in names
    ]
    ends = msgspec.convert(opened.json(archive.STATES), list[RevisionEnd])
    return ChainEvidence(entries=entries, anchors=anchors, ends=ends, ring=ring)


def _standing(evidence: ChainEvidence, window: int, revision: int) -> ChainEntry | None:
    """Return the newest certificate of the revision that no entry revokes."""
    revoked = {entry.revokes for entry in evidence.entries}
    of_revision = [
        entry
        for entry in evidence.entries
        if entry.kind is EntryKind.CERTIFICATE and (entry.number, entry.revision) == (window, revision)
    ]
    return next((entry for entry in reversed(of_revision) if entry.ordinal not in revoked), None)


def _other_pipeline(evidence: ChainEvidence, pipeline: str) -> Iterator[str]:
    for entry in evidence.entries:
        if entry.body.get("pipeline") != pipeline:
            yield f"{entry.name}: is of pipeline {entry.body.get('pipeline')}, and the window of {pipeline}"


def _manifest_problems(opened: ReadArchive, certificate: ChainEntry) -> Iterator[str]:
    """Yield the manifests that are not those of the certificate, which has their digests."""
    manifests: Mapping[str, Any] = opened.json(archive.MANIFESTS)
    signed: Mapping[str, Any] = certificate.body.get("decided_by", {}).get("snapshots", {})
    for point in sorted({*manifests, *signed}):
        if point not in manifests or sha256_of(manifests[point]) != signed.get(point, {}).get("manifest_sha256"):
            yield f"{archive.MANIFESTS}: the manifest of {point} is not the one that was certified"


def _finding_problems(opened: ReadArchive, certificate: ChainEntry) -> Iterator[str]:
    """Yield where there are other findings than the certificate counts; what was accepted since is counted as open."""
    counted = Counter[str]()
    for line in opened.lines(archive.FINDINGS):
        finding = json.loads(line)
        counted[finding["verdict"]] += 1
    signed = Counter[str]()
    for name, count in certificate.body.get("how", {}).get("findings", {}).items():
        signed[name.split(":")[0]] += count
    for verdict in sorted({*counted, *signed}):
        if counted[verdict] != signed[verdict]:
            yield (
                f"{archive.FINDINGS}: has {counted[verdict]} findings that are {verdict}, and the certificate "
                f"{signed[verdict]}"
            )


def _erased(opened: ReadArchive, pipeline: str, ring: KeyRing) -> ErasedContents:
    if archive.ERASURES not in opened.names:
        return ErasedContents()
    return contents_of(msgspec.convert(opened.json(archive.ERASURES), list[SignedErasure]), pipeline, ring)


def _plan_problems(
    opened: ReadArchive, pipeline: str, window: int, certificate: ChainEntry | None, erased: ErasedContents
) -> Iterator[str]:
    """Yield what is wrong with the plan: its hash is over its actions, as they were frozen or as an erasure left them,
    and the certificate has the hash."""
    signed = None if certificate is None else certificate.body.get("how", {}).get("plan")
    if archive.PLAN not in opened.names:
        if signed is not None:
            yield f"{archive.PLAN}: is not there, and the certificate names plan {signed['id']}"
        return
    plan = opened.json(archive.PLAN)
    digest: hashlib._Hash = plan_hash(pipeline, window, plan["payload_sha256"])
    for line in opened.lines(archive.ACTIONS):
        digest.update(line)
    if digest.hexdigest() not in {plan["sha256"], *erased.plans.get(plan["id"], ())}:
        yield f"{archive.ACTIONS}: is not what plan {plan['id']} was frozen with: its hash is another one"
    if certificate is not None and (signed is None or signed["sha256"] != plan["sha256"]):
        yield f"{archive.PLAN}: plan {plan['id']} is not the one that was certified"
    approval = plan["approval"]
    if signed is not None and (signed["approval"] or {}).get("by") != (approval or {}).get("by"):
        yield f"{archive.PLAN}: the answer to plan {plan['id']} is not the one that was certified"
