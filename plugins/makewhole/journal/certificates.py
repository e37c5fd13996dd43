"""Read and write the chain of a pipeline: its certificates and their revocations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.window import Window, WindowState
from makewhole.sql import PgConnection, records, single_value, statements_of

_run = statements_of("certificate")


class EntryKind(StrEnum):
    """The kind of an entry: it certifies a revision of a window, or revokes the certificate of one."""

    CERTIFICATE = "certificate"
    REVOCATION = "revocation"


@dataclass(frozen=True, kw_only=True)
class ChainEntry:
    """An entry of a pipeline's chain. `sha256` and `signature` are over the body, which names `previous`.

    `number` and `revision` are of the window that is certified, or whose certificate, the entry `revokes`, is revoked.
    `signed_by` is the id of the key; None, as `signature`, in certificates from before they were signed.
    """

    ordinal: int
    number: int
    revision: int
    digest: str
    body: Mapping[str, Any]
    previous: str | None
    sha256: str
    uri: str
    issued_at: datetime | None = None
    kind: EntryKind = EntryKind.CERTIFICATE
    revokes: int | None = None
    signed_by: str | None = None
    signature: str | None = None

    @property
    def name(self) -> str:
        """Name the entry for people."""
        return f"{self.kind.value} {self.ordinal} (window {self.number})"

    @property
    def handed_over(self) -> int:
        """Return how many keys in flight its window left to the next one; 0 where the body, which anybody who writes in
        the journal may have changed, does not say."""
        body_part = self.body.get("handed_over")
        keys = body_part.get("keys") if isinstance(body_part, Mapping) else None
        return keys if isinstance(keys, int) else 0

    @property
    def accepted(self) -> int:
        """Return how many findings of its window stay as they are by a person's word; 0 where the body does not say."""
        body_part = self.body.get("accepted")
        keys = body_part.get("findings") if isinstance(body_part, Mapping) else None
        return keys if isinstance(keys, int) else 0


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """How far a pipeline is proven as of the entry `head` of its chain, whose hash is `sha256`: every window up to
    `window`, which ends at `until`, has a certificate that stands. None: not even the first window has."""

    head: int
    sha256: str
    window: int | None
    until: datetime | None


@dataclass(frozen=True, kw_only=True)
class RevisionEnd:
    """A revision of a window and the state that it is in."""

    number: int
    revision: int
    state: WindowState


def last(journal: PgConnection, pipeline: str) -> ChainEntry | None:
    """Return the newest entry of the chain."""
    return next(iter(_entries(journal, "last", pipeline=pipeline)), None)


def entry(journal: PgConnection, pipeline: str, ordinal: int) -> ChainEntry | None:
    """Return one entry of the chain."""
    return next(iter(_entries(journal, "entry", pipeline=pipeline, ordinal=ordinal)), None)


def of_revision(journal: PgConnection, window: Window) -> ChainEntry | None:
    """Return the newest certificate of this revision, if one was issued; it may have been revoked since."""
    return next(iter(_entries(journal, "of_revision", **scope(window))), None)


def revoked_by(journal: PgConnection, pipeline: str, ordinal: int) -> int | None:
    """Return the number of the entry that revokes another one; None for one that stands."""
    return next((by for (by,) in _run(journal, "revoked_by", pipeline=pipeline, ordinal=ordinal)), None)


def last_revocation(journal: PgConnection, pipeline: str, number: int) -> ChainEntry | None:
    """Return the newest revocation of a certificate of a window; None: none was ever revoked."""
    return next(iter(_entries(journal, "last_revocation", pipeline=pipeline, number=number)), None)


def standing(journal: PgConnection, pipeline: str, number: int) -> list[ChainEntry]:
    """Return the certificates of a window that no entry revokes, oldest first."""
    return _entries(journal, "standing", pipeline=pipeline, number=number)


def watermark(journal: PgConnection, pipeline: str) -> Watermark | None:
    """Return how far a pipeline is proven; None where its chain is empty."""
    return next(iter(records(Watermark, _run(journal, "watermark", pipeline=pipeline))), None)


def revocations_after(journal: PgConnection, pipeline: str, ordinal: int) -> list[ChainEntry]:
    """Return the revocations that came after an entry of the chain, oldest first."""
    return _entries(journal, "revocations_after", pipeline=pipeline, ordinal=ordinal)


def chain(journal: PgConnection, pipeline: str) -> list[ChainEntry]:
    """Return the whole chain, oldest first."""
    return _entries(journal, "chain", pipeline=pipeline)


def ends(journal: PgConnection, pipeline: str) -> list[RevisionEnd]:
    """Return the state of every revision of every window, in order."""
    return records(RevisionEnd, _run(journal, "ends", pipeline=pipeline))


def gaps_after(journal: PgConnection, window: Window) -> int | None:
    """Return the newest later revision of the window that ended with gaps; None when there is none."""
    revision: int | None = single_value(_run(journal, "gaps_after", **scope(window)))
    return revision


def insert(journal: PgConnection, pipeline: str, added: ChainEntry) -> None:
    """Add an entry to the chain; the table refuses a second one with the same number."""
    known = {"pipeline": pipeline, "body": Json(dict(added.body)), "kind": added.kind.value}
    _run(journal, "insert", **vars(added) | known)


def _entries(journal: PgConnection, statement: str, **values: Any) -> list[ChainEntry]:
    return records(ChainEntry, _run(journal, statement, **values))
