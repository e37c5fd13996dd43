"""Read a pipeline's chain, its anchors and its windows for a check, and compare snapshots' files with certificates."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from makewhole.journal import certificates, windows
from makewhole.journal.certificates import ChainEntry, EntryKind
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.retention import removals
from makewhole.lake.storage import Storage
from makewhole.model.retention import Kept
from makewhole.signing.keys import KeyRing, sha256_of
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_check import Anchor, ChainEvidence, Head, read_anchor
from makewhole.window.certifying.erased_contents import ErasedContents

_NOTHING_ERASED = ErasedContents()
_NAME = re.compile(r"([0-9]{6,})(-.*)?\.json")


def read_evidence(
    journal: PgConnection, storage: Storage, pipeline: str, ring: KeyRing, heads: Sequence[Head] = ()
) -> ChainEvidence:
    """Return what a check of a pipeline's chain needs; `heads` are what others have kept of it."""
    entries = certificates.chain(journal, pipeline)
    return ChainEvidence(
        entries=entries,
        anchors=_anchors(storage, pipeline, entries),
        ends=certificates.ends(journal, pipeline),
        ring=ring,
        heads=heads,
    )


def _anchors(storage: Storage, pipeline: str, entries: Sequence[ChainEntry]) -> list[Anchor]:
    """Return the anchors in the folder of certificates.

    Before certificates were signed, a name had the window in it, and an attempt that died could leave a file behind:
    of these only the file that the entry names counts where the journal has an entry of the number.
    """
    folder, anchors = f"{pipeline}/certificates", []
    named = {entry.ordinal: entry.uri.rsplit("/", 1)[-1] for entry in entries}
    for name in storage.names(folder):
        matched = _NAME.fullmatch(name)
        if matched is None:
            continue
        ordinal = int(matched[1])
        if matched[2] is None or named.get(ordinal, name) == name:
            content = storage.read_if_exists(f"{folder}/{name}")
            anchors.append(read_anchor(storage.uri(f"{folder}/{name}"), ordinal, content or b""))
    return anchors


def file_problems(
    journal: PgConnection, storage: Storage, entries: Sequence[ChainEntry], erased: ErasedContents = _NOTHING_ERASED
) -> Iterator[str]:
    """Yield the files of certified snapshots that are not as they were written, by SHA-256; every byte is read. A file
    may be as an erasure left it.

    The certificate has the digest of each manifest, and the manifest those of its files.
    """
    revoked = {entry.revokes for entry in entries}
    for entry in entries:
        decided_by: Mapping[str, Any] = entry.body.get("decided_by", {})
        if entry.kind is EntryKind.REVOCATION or entry.ordinal in revoked or not decided_by:
            continue
        window = windows.load(journal, entry.body["pipeline"], entry.number, entry.revision)
        manifests = snapshot_manifests.snapshots(journal, window)
        gone = removals.of_window(journal, window.pipeline, window.number)
        is_kept = not any(removal.kind is Kept.ARCHIVES and removal.revision >= window.revision for removal in gone)
        for point, signed in decided_by["snapshots"].items():
            manifest = manifests.get(point)
            if manifest is None or sha256_of(manifest) != signed["manifest_sha256"]:
                yield f"{entry.name}: the manifest of the snapshot of {point} is not the one that was certified"
            else:
                removed = None if is_kept else f"{manifest.get('archive')}/"
                yield from _changed_files(storage, entry.name, manifest, removed, erased)


def _changed_files(
    storage: Storage, name: str, manifest: Mapping[str, Any], removed: str | None, erased: ErasedContents
) -> Iterator[str]:
    """Yield what is wrong with the files of a snapshot; those in the folder `removed` need not be there any more."""
    files = dict(manifest.get("sha256", {}))
    if "sequences_sha256" in manifest:
        files[manifest["sequences"]] = manifest["sequences_sha256"]
    for path, digest in sorted(files.items()):
        try:
            is_same = storage.sha256(path) in {digest, *erased.files.get(path, ())}
        except FileNotFoundError:
            if removed is not None and path.startswith(removed):
                continue
            yield f"{name}: {storage.uri(path)} is not there any more"
            continue
        if not is_same:
            yield f"{name}: {storage.uri(path)} is not what was written: its SHA-256 is another one"
