"""Lengthen the chain of a pipeline: certify a revision, or revoke a certificate that no longer holds.

Each entry carries the hash of the one before it and a signature over all of it. It is committed to the journal first,
and then written beside the files as the *anchor* of the chain, once, where the journal's writer does not reach. An
entry without its anchor, of an attempt that was killed in between, gets it before the chain is lengthened.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from makewhole.journal import certificates, windows
from makewhole.journal.certificates import ChainEntry, EntryKind
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import Window, WindowState
from makewhole.signing.key_files import believed_keys
from makewhole.signing.keys import KeyRing, SigningKey, sha256_of
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_content import FORMAT, certificate_body


@dataclass(frozen=True, kw_only=True)
class ChainWriter:
    """Lengthens a chain of certificates. Every method runs in the journal's transaction, `publish` after it."""

    journal: PgConnection
    storage: Storage
    key: SigningKey

    def begin(self, pipeline: str) -> None:
        """Wait until no other process lengthens this chain, and make sure that it is the one that was published.

        Raises:
            CorruptionError: the files have more of the chain than the journal, or the journal's last entry is not ours.
        """
        windows.lock_pipeline(self.journal, pipeline)
        last = certificates.last(self.journal, pipeline)
        self._publish_rest(pipeline, last)
        require_none_ahead(self.journal, self.storage, pipeline, last, "Nothing was certified")

    def certify(self, pipeline: Pipeline, window: Window) -> ChainEntry:
        """Append the certificate of a revision."""
        body = certificate_body(self.journal, pipeline, window)
        blank = ChainEntry(
            ordinal=0,
            number=window.number,
            revision=window.revision,
            digest=body["digest"],
            body=body,
            previous=None,
            sha256="",
            uri="",
        )
        return self._append(window.pipeline, blank)

    def revoke(self, window: Window, state: WindowState, reason: str, *, also_later: bool = False) -> list[ChainEntry]:
        """Append a revocation of each standing certificate of a window; `window` is the revision that is the cause. It
        refutes its own and those of older revisions; later ones, which looked after it, only with `also_later`."""
        return [
            self._append(window.pipeline, _revocation(window, certificate, state, reason))
            for certificate in certificates.standing(self.journal, window.pipeline, window.number)
            if also_later or certificate.revision <= window.revision
        ]

    def publish(self, entries: Sequence[ChainEntry]) -> None:
        """Write the anchors of entries that are committed."""
        for entry in entries:
            self.storage.write_once(anchor_path(entry.body["pipeline"], entry.ordinal), anchor_bytes(entry))

    def _append(self, pipeline: str, blank: ChainEntry) -> ChainEntry:
        last = certificates.last(self.journal, pipeline)
        ordinal, previous = (last.ordinal + 1, last.sha256) if last else (1, None)
        signed_by = self.key.public.id
        body = {**blank.body, "ordinal": ordinal, "previous": previous, "signed_by": signed_by}
        added = replace(
            blank,
            ordinal=ordinal,
            body=body,
            previous=previous,
            sha256=sha256_of(body),
            uri=self.storage.uri(anchor_path(pipeline, ordinal)),
            signed_by=signed_by,
            signature=self.key.sign(body),
        )
        certificates.insert(self.journal, pipeline, added)
        return added

    def _publish_rest(self, pipeline: str, last: ChainEntry | None) -> None:
        """Write the anchors that an attempt left out when it was killed after its commit: the newest entries'.

        Raises:
            CorruptionError: an entry is another one than its anchor, or has none and is not signed by a key of ours.
        """
        ring = KeyRing.of(self.key.public) + believed_keys()
        rest: list[ChainEntry] = []
        while last is not None:
            anchor = self.storage.read_if_exists(anchor_path(pipeline, last.ordinal))
            is_old = anchor is None and last.signed_by is None
            if is_old or anchor == anchor_bytes(last):
                break
            if anchor is not None or not is_signed(last, ring):
                why = "it differs from" if anchor else "it carries no signature of a key of ours, and there is no"
                raise CorruptionError(
                    f"{pipeline}: {last.name} in the journal is not the one that this service issued: {why} "
                    f"{self.storage.uri(anchor_path(pipeline, last.ordinal))}. Nothing was certified. See "
                    f"`makewhole certificate verify {pipeline}`"
                )
            rest.append(last)
            last = certificates.entry(self.journal, pipeline, last.ordinal - 1)
        self.publish(rest[::-1])


def require_none_ahead(
    journal: PgConnection, storage: Storage, pipeline: str, last: ChainEntry | None, undone: str
) -> None:
    """Check that the journal, whose last entry was read before, has all of the chain that was published. `undone`: what
    was not done where it has not.

    Raises:
        CorruptionError: the files have more of the chain than the journal.
    """
    ahead = _next_ordinal(last)
    while storage.read_if_exists(anchor_path(pipeline, ahead)) is not None:
        looked, ahead = ahead, _next_ordinal(certificates.last(journal, pipeline))
        if ahead == looked:  # and no other process has lengthened it meanwhile
            raise CorruptionError(
                f"{pipeline}: entry {ahead} of the chain of certificates stands beside the files, in "
                f"{storage.uri(anchor_path(pipeline, ahead))}, and the journal ends before it: it was removed "
                f"there, or an old backup was restored. {undone}. Restore the journal with this entry; "
                f"see `makewhole certificate verify {pipeline}`"
            )


def _next_ordinal(last: ChainEntry | None) -> int:
    return (0 if last is None else last.ordinal) + 1


def _revocation(window: Window, revoked: ChainEntry, state: WindowState, reason: str) -> ChainEntry:
    body: dict[str, Any] = {
        "format": FORMAT,
        "kind": EntryKind.REVOCATION.value,
        "pipeline": window.pipeline,
        "window": revoked.number,
        "revision": revoked.revision,
        "digest": revoked.digest,
        "revokes": revoked.ordinal,
        "revoked_sha256": revoked.sha256,
        "because": {"revision": window.revision, "state": state.value, "reason": reason},
        "issued_at": datetime.now(UTC).isoformat(),
    }
    return replace(revoked, body=body, kind=EntryKind.REVOCATION, revokes=revoked.ordinal)


def is_signed(entry: ChainEntry, ring: KeyRing) -> bool:
    """Return whether an entry is as the believed key signed it that the entry names."""
    if entry.signed_by is None or entry.signature is None or entry.body.get("signed_by") != entry.signed_by:
        return False
    return ring.has_signed(entry.body, entry.signed_by, entry.signature)


def anchor_path(pipeline: str, ordinal: int) -> str:
    """Return the path of an entry's anchor in the storage; its number alone names it, so that no listing is needed."""
    return f"{pipeline}/certificates/{ordinal:06d}.json"


def anchor_bytes(entry: ChainEntry) -> bytes:
    """Return the content of an anchor: the body, its hash, and its signature."""
    document = {**entry.body, "sha256": entry.sha256, "signature": entry.signature}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False).encode()
