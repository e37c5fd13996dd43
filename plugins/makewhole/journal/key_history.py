"""Read the history of one business key: findings, and the actions of plans with their receipts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.journal.statements import scope
from makewhole.model.window import Window
from makewhole.sql import PgConnection, records, rows_in_pieces, statements_of

_run = statements_of("key_history")

Reported = tuple[str, int | None]
"""The hash of a key, and the number of its copies that was reported last; None: a window that is still open reported
it."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict of one revision of a window on the key on a hop. `matched` has no cause, evidence or outcome."""

    window: int
    revision: int
    hop: str
    verdict: str
    cause: str | None = None
    evidence: Mapping[str, Any] | None = None
    outcome: str | None = None
    reason: str | None = None
    judged_at: datetime | None = None
    verified_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class KeyAction:
    """An action on the key. `chunk`, `receipt` and `done_at` are of the proof that it took effect, if it did.

    `position` (`partition:offset`) is of the record that it wrote.
    """

    plan: str
    window: int
    revision: int
    plan_state: str
    plan_reason: str | None
    frozen_at: datetime
    decision: str | None
    decided_by: str | None
    decided_at: datetime | None
    seq: int
    remedy: str
    hop: str
    target: str
    outcome: str | None
    reason: str | None
    chunk: int | None
    receipt: str | None
    done_at: datetime | None
    position: str | None = None


def judgements(journal: PgConnection, pipeline: str, key_hash: str) -> list[Judgement]:
    """Return every finding about the key, of every revision, by window, revision and hop."""
    return records(Judgement, _run(journal, "judgements", pipeline=pipeline, key_hash=key_hash))


def key_actions(journal: PgConnection, pipeline: str, key_hash: str) -> list[KeyAction]:
    """Return every action on the key, in the order in which the plans were frozen."""
    return records(KeyAction, _run(journal, "deeds", pipeline=pipeline, key_hash=key_hash))


def judged_at(journal: PgConnection, window: Window) -> dict[str, datetime]:
    """Return when each hop of this revision was judged."""
    rows = _run(journal, "judged_at", **scope(window))
    return dict(rows)


def reported_keys(journal: PgConnection, window: Window, hop: str, first: int) -> Iterator[list[Reported]]:
    """Yield the keys that the windows from `first` up to this one found wrong on a hop, in their newest judged
    revisions, and that still are: repeated, unexpected, different or undecidable, each with a row. So many at a
    time."""
    parameters = {"pipeline": window.pipeline, "hop": hop, "first": first, "number": window.number}
    yield from rows_in_pieces(journal, "key_history", "reported_keys", parameters)


def reported_of_keys(journal: PgConnection, window: Window, hop: str, key_hashes: Sequence[str]) -> list[Reported]:
    """Return those of some keys that a window before this one found wrong on a hop (`reported_keys`)."""
    if not key_hashes:
        return []
    asked = {"pipeline": window.pipeline, "hop": hop, "number": window.number, "key_hashes": list(key_hashes)}
    return _run(journal, "reported_of_keys", **asked)


def unexpected_keys(
    journal: PgConnection, pipeline: str, hop: str, revisions: Mapping[int, int]
) -> dict[int, list[str]]:
    """Return the hashes of the keys that each of these windows (number → revision) reported as unexpected or
    undecidable on a hop, as far as the journal has its findings."""
    places = {"numbers": list(revisions), "revisions": list(revisions.values())}
    rows = _run(journal, "unexpected_keys", pipeline=pipeline, hop=hop, **places)
    hashes: dict[int, list[str]] = {number: [] for number in revisions}
    for number, key_hash in rows:
        hashes[number].append(key_hash)
    return hashes
