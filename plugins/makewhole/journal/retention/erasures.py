"""Read and write the erasures of keys, and take a key out of what the journal has of it."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.journal import windows
from makewhole.journal.retention.removable import FORGOTTEN
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.refusal import RefusalCode
from makewhole.model.retention import Erasure, mac_of, prefix_of
from makewhole.sql import PgConnection, record, records, single_value, statements_of

_run = statements_of("erasure")

_SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class PlanOfKey:
    """A plan with actions of a key (`seqs`), and the points that have receipts of it (`targets`)."""

    id: str
    number: int
    revision: int
    sha256: str
    payload_uri: str | None
    payload_sha256: str | None
    targets: tuple[str, ...]
    seqs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ErasedKey:
    """A key that is being erased, with its hash (32 hex digits). `spares`: points of chains in which it stays."""

    pipeline: str
    text: str
    hash: str
    spares: tuple[str, ...] = ()


def require_quiet(journal: PgConnection, pipeline: str) -> None:
    """Refuse an erasure beside whatever reads or writes what it changes.

    Raises:
        RefusedError: a window is open, a plan or a question waits.
    """
    busy = _busy(journal, pipeline)
    if busy:
        raise RefusedError(
            f"no key of {pipeline} can be erased now: {'; '.join(busy)}. Let it end, or answer or reject it, and judge "
            "a window that broke off again (`makewhole run`); then erase the key"
        )


def require_complete(journal: PgConnection, key: ErasedKey, plans: Sequence[PlanOfKey]) -> None:
    """Require that nothing which may have the key began since these plans of it were found; no window is opened until
    the transaction ends.

    Raises:
        TransientError: a window, a plan or a question did.
    """
    windows.lock_pipeline(journal, key.pipeline)
    began = _busy(journal, key.pipeline)
    if not began and plans_of_key(journal, key) != list(plans):
        began = ["a plan with it was made, or ran"]
    if began:
        raise TransientError(
            f"a key of {key.pipeline} is not erased to its end, as meanwhile {'; '.join(began)}. Let it end, or answer "
            "or reject it; then erase the same key again, which goes on from here"
        )


def _busy(journal: PgConnection, pipeline: str) -> list[str]:
    return [row.what for row in _run(journal, "busy", pipeline=pipeline)]


def count_rows(journal: PgConnection, key: ErasedKey) -> dict[str, int]:
    """Count the rows of a key in the journal, by what they are."""
    [row] = _run(journal, "count_rows", key=key.text, **_rows_of(key))
    return dict(row._asdict())


def plans_of_key(journal: PgConnection, key: ErasedKey) -> list[PlanOfKey]:
    """Return the plans that have actions of a key, the oldest first."""
    return records(PlanOfKey, _run(journal, "plans_of_key", **_rows_of(key)))


def begin(journal: PgConnection, key: ErasedKey, reason: str, asked_by: str) -> Erasure:
    """Decide to erase a key, or go on with an erasure of it that was not finished; what waits is refused.

    Raises:
        RefusedError: a window is open, a plan or a question waits.
    """
    require_quiet(journal, key.pipeline)
    for unfinished in records(Erasure, _run(journal, "unfinished", pipeline=key.pipeline)):
        if unfinished.is_of(key.hash) and unfinished.spares == key.spares:
            return unfinished
    secret = secrets.token_hex(_SECRET_BYTES)
    values = {
        "pipeline": key.pipeline,
        "secret": secret,
        "key_mac": mac_of(secret, key.hash),
        "prefix": prefix_of(key.hash),
        "spares": list(key.spares),
        "reason": reason,
        "asked_by": asked_by,
    }
    [row] = _run(journal, "begin_erasure", **values)
    return record(Erasure, row)


def note_file(journal: PgConnection, erasure: Erasure, path: str, sha256: str, became: str | None) -> None:
    """Note what a file becomes (None: it is removed), before it changes."""
    _run(journal, "note_file", erasure=erasure.id, path=path, sha256=sha256, became=became)


def forget_actions(
    journal: PgConnection, erasure: Erasure, key: ErasedKey, plan: PlanOfKey, payload_sha256: str | None
) -> None:
    """Take a key out of the actions of a plan, whose payloads were written again without it."""
    _run(journal, "forget_payload", plan=plan.id, payload_sha256=payload_sha256)
    codes = [code.value for code in RefusalCode if code is not RefusalCode.OTHER]
    _run(journal, "forget_actions", plan=plan.id, codes=codes, **_instead(erasure, key))


def note_plan(journal: PgConnection, erasure: Erasure, plan: PlanOfKey, became: str) -> None:
    """Note the hash of a plan without the actions of a key."""
    _run(journal, "note_plan", erasure=erasure.id, plan=plan.id, sha256=plan.sha256, became=became)


def forget_rows(journal: PgConnection, erasure: Erasure, key: ErasedKey) -> None:
    """Take a key out of findings, keys handed over, accepted findings and incidents."""
    for statement in ("forget_findings", "forget_handovers", "forget_accepted"):
        _run(journal, statement, **_instead(erasure, key))
    for row in _run(journal, "incidents_naming", key=key.text, **_rows_of(key)):
        named = [
            {**entry, "key": FORGOTTEN} if entry.get("key") == key.text else entry for entry in row.detail["first"]
        ]
        _run(journal, "forget_incident", place=row.place, detail=json.dumps({**row.detail, "first": named}))


def _rows_of(key: ErasedKey) -> dict[str, Any]:
    return {"pipeline": key.pipeline, "key_hash": key.hash, "spares": list(key.spares)}


def _instead(erasure: Erasure, key: ErasedKey) -> dict[str, Any]:
    return {
        **_rows_of(key),
        "blind": erasure.blind,
        "marker": FORGOTTEN,
        "because": f"its key was {erasure.sentence}",
    }


def done(journal: PgConnection, erasure: Erasure) -> dict[str, Any]:
    """Return what an erasure did: files with their SHA-256 before and after, and plans with their hashes."""
    return {
        "files": _changes(_run(journal, "files_of_erasure", erasure=erasure.id)),
        "plans": _changes(_run(journal, "plans_of_erasure", erasure=erasure.id)),
    }


def _changes(rows: list[Any]) -> dict[str, dict[str, str | None]]:
    return {row[0]: {"sha256": row.sha256, "became": row.became} for row in rows}


def end(journal: PgConnection, erasure: Erasure, body: Mapping[str, Any], signed_by: str, signature: str) -> None:
    """Note that all of it is gone, with what was done and who signs it."""
    values = {"erased_at": body["erased_at"], "body": json.dumps(body), "signed_by": signed_by, "signature": signature}
    _run(journal, "end_erasure", erasure=erasure.id, **values)


def erasures(journal: PgConnection, pipeline: str) -> list[Erasure]:
    """Return the erasures of a pipeline, the oldest first."""
    return records(Erasure, _run(journal, "erasures", pipeline=pipeline))


@dataclass(frozen=True, kw_only=True)
class SignedErasure:
    """The record of an erasure as it was signed."""

    id: int
    body: Mapping[str, Any]
    signed_by: str | None
    signature: str | None


def signed_erasures(journal: PgConnection, pipeline: str) -> list[SignedErasure]:
    """Return what the erasures of a pipeline that came to their end did, the oldest first."""
    return records(SignedErasure, _run(journal, "signed_erasures", pipeline=pipeline))


def unfinished_files(journal: PgConnection, pipeline: str) -> dict[str, str | None]:
    """Return the files that erasures which did not come to their end wrote again: what each became, by path."""
    return {row.path: row.became for row in _run(journal, "unsigned_files", pipeline=pipeline)}


def require_whole(journal: PgConnection, plan: str) -> None:
    """Refuse to undo a plan of which a key was erased.

    Raises:
        RefusedError: one was.
    """
    for row in _run(journal, "erasure_of_plan", plan=plan):
        raise RefusedError(
            f"undo of plan {plan} is no longer possible: a key of it was erased on request at "
            f"{row.asked_at:%Y-%m-%d %H:%M UTC}"
        )


def windows_since(journal: PgConnection, pipeline: str) -> tuple[list[int], datetime]:
    """Return the numbers of the windows of which a revision was opened since the erased keys were last looked for, and
    up to which moment they need not be searched again (`note_searched`)."""
    numbers = [row.number for row in _run(journal, "windows_since", pipeline=pipeline)]
    return numbers, single_value(_run(journal, "search_end", pipeline=pipeline))


def note_searched(journal: PgConnection, known: Sequence[Erasure], searched_to: datetime) -> None:
    """Note up to which moment windows were searched for these keys, and what they have of them is erased."""
    _run(journal, "note_searched", ids=[erasure.id for erasure in known], searched_to=searched_to)
