"""Read which files and plans erasures on request have changed, as far as signatures vouch for it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.journal.retention import erasures
from makewhole.journal.retention.erasures import SignedErasure
from makewhole.model.text import counted
from makewhole.signing.keys import KeyRing
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class ErasedContents:
    """The files and plans that erasures changed: SHA-256 by path, and hashes by plan. `problems`: erasures that are not
    as they were signed; they excuse nothing."""

    files: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    plans: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def erased_contents(journal: PgConnection, pipeline: str, ring: KeyRing) -> ErasedContents:
    """Return what the erasures of a pipeline did. One that did not come to its end is a problem, and its files are
    named by nothing else."""
    known = contents_of(erasures.signed_erasures(journal, pipeline), pipeline, ring)
    unfinished = erasures.unfinished_files(journal, pipeline)
    if not unfinished:
        return known
    problem = (
        f"an erasure of a key of {pipeline} did not come to its end ({len(unfinished)} files were written again): run "
        "`makewhole erase` with the same key once more"
    )
    files = {**known.files}
    for path, became in unfinished.items():
        files[path] = files.get(path, frozenset()) | {became}
    return ErasedContents(
        files=files, plans=known.plans, problems=(*known.problems, problem), sentences=known.sentences
    )


def contents_of(signed: Iterable[SignedErasure], pipeline: str, ring: KeyRing) -> ErasedContents:
    """Return what erasures did, each by the body that was signed."""
    files: dict[str, set[str | None]] = defaultdict(set)
    plans: dict[str, set[str | None]] = defaultdict(set)
    problems, sentences = [], []
    for entry in signed:
        if entry.body.get("pipeline") != pipeline or (ring.keys and not _is_signed(entry, ring)):
            problems.append(f"erasure {entry.id}: its signature is not that of a key that was given over this content")
            continue
        for into, changes in ((files, entry.body["files"]), (plans, entry.body["plans"])):
            for name, change in changes.items():
                into[name].add(change["became"])
        sentences.append(_sentence(entry.id, entry.body))
    return ErasedContents(
        files={name: frozenset(became) for name, became in files.items()},
        plans={name: frozenset(became) for name, became in plans.items()},
        problems=tuple(problems),
        sentences=tuple(sentences),
    )


def _is_signed(erasure: SignedErasure, ring: KeyRing) -> bool:
    if erasure.signed_by is None or erasure.signature is None or erasure.body.get("signed_by") != erasure.signed_by:
        return False
    return ring.has_signed(erasure.body, erasure.signed_by, erasure.signature)


def _sentence(number: int, body: Mapping[str, Any]) -> str:
    without = f"{counted(len(body['files']), 'file')} and {counted(len(body['plans']), 'plan')}"
    return (
        f"erasure {number}: a key was erased on request at {body['erased_at'][:16].replace('T', ' ')} UTC, asked by "
        f"{body['asked_by']}: {without} are without it"
    )
