"""Read and write what people accept. Every function runs in the caller's transaction."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any

from makewhole.journal import windows
from makewhole.journal.findings.stored_evidence import StoredEvidence
from makewhole.journal.statements import insert_many, scope, storable
from makewhole.model.acceptance import ACCEPTABLE, Acceptance, AcceptanceState, AcceptedFinding, fingerprint
from makewhole.model.errors import PermanentError
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, single_value, statements_of

_run = statements_of("acceptance")

_by_window = attrgetter("window", "revision")


@dataclass(frozen=True, kw_only=True)
class StandingWord:
    """An acceptance of which `findings` of a revision are accepted now; `digest_of` are their identities, in order."""

    id: str
    sha256: str
    reason: str
    until: datetime | None
    asked_by: str
    asked_at: datetime
    decided_by: str
    decided_at: datetime
    findings: int
    identities: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class StandingFindings:
    """The findings of one revision of a window that stand."""

    window: int
    revision: int
    findings: Sequence[AcceptedFinding]


@dataclass(frozen=True, kw_only=True)
class OpenedAgain:
    """A revision of a window of which accepted findings are open again, by the reason."""

    window: int
    revision: int
    reasons: Mapping[str, int]

    def sentence(self) -> str:
        """Return what happened in words."""
        keys = sum(self.reasons.values())
        are = "accepted finding is" if keys == 1 else "accepted findings are"
        return f"{keys:,} {are} open again ({'; '.join(self.reasons)})"


@dataclass(frozen=True, kw_only=True)
class KeyWord:
    """A person's word on one finding of a key. `ended_because`: it does not stand any more."""

    acceptance: str
    window: int
    revision: int
    hop: str
    verdict: str
    state: str
    reason: str
    until: datetime | None
    asked_by: str
    asked_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    ended_at: datetime | None
    ended_because: str | None


@dataclass(frozen=True, kw_only=True)
class Question:
    """The fields of an acceptance that are written beside itself: the run that asked, how long an answer counts, and
    what was shown."""

    request: str
    expires: timedelta
    seen: Mapping[str, Any]


def put(
    journal: PgConnection, acceptance: Acceptance, findings: Iterable[AcceptedFinding], question: Question
) -> Acceptance:
    """Write an acceptance with its findings; return it as it is stored."""
    _run(
        journal,
        "insert",
        id=acceptance.id,
        pipeline=acceptance.pipeline,
        number=acceptance.window,
        revision=acceptance.revision,
        request=question.request,
        sha256=acceptance.sha256,
        reason=acceptance.reason,
        until=acceptance.until,
        findings=acceptance.findings,
        asked_by=acceptance.asked_by,
        expires_seconds=question.expires.total_seconds(),
        state=acceptance.state.value,
        decided_by=acceptance.decided_by,
        seen=json.dumps(dict(question.seen), default=str),
    )
    place = (acceptance.id, acceptance.pipeline, acceptance.window, acceptance.revision)
    insert_many(journal, "acceptance", "insert_findings", _rows(place, findings, stands=acceptance.stands))
    return get(journal, acceptance.id)


def _rows(place: tuple[Any, ...], findings: Iterable[AcceptedFinding], *, stands: bool) -> Iterator[Sequence[Any]]:
    for finding in findings:
        judged = (finding.hop, storable(finding.key), finding.key_hash, finding.verdict.value, finding.cause.value)
        yield (*place, *judged, finding.fingerprint, finding.held, stands)


def get(journal: PgConnection, acceptance: str, *, is_locked: bool = False) -> Acceptance:
    """Return an acceptance by id, locked until the transaction ends when `is_locked`.

    Raises:
        PermanentError: there is none.
    """
    rows = _run(journal, "by_id_locked" if is_locked else "by_id", id=acceptance)
    if not rows:
        raise PermanentError(
            f"there is no acceptance {acceptance}; `makewhole accept PIPELINE` lists those that there are"
        )
    return record(Acceptance, rows[0])


def by_request(journal: PgConnection, pipeline: str, request: str) -> Acceptance | None:
    """Return the acceptance that a run asked for."""
    return next(iter(records(Acceptance, _run(journal, "by_request", pipeline=pipeline, request=request))), None)


def of_pipeline(journal: PgConnection, pipeline: str, number: int | None = None) -> list[Acceptance]:
    """Return the acceptances of a pipeline, or of one window of it, oldest first."""
    return records(Acceptance, _run(journal, "of_pipeline", pipeline=pipeline, number=number))


def has_question_expired(journal: PgConnection, acceptance: str) -> bool:
    """Return whether the time to answer is over, by the journal's clock."""
    return bool(single_value(_run(journal, "question_has_expired", id=acceptance)))


def decide(
    journal: PgConnection, acceptance: str, state: AcceptanceState, by: str | None, seen: Mapping[str, Any]
) -> None:
    """Write the answer to one that waits; its findings stand where it is yes."""
    _run(journal, "decide", id=acceptance, state=state.value, by=by, seen=json.dumps(dict(seen), default=str))
    if state is AcceptanceState.STANDING:
        _run(journal, "stand", id=acceptance)


def revoke(journal: PgConnection, acceptance: str, by: str, reason: str) -> None:
    """Take an acceptance back: its findings are open again."""
    _run(journal, "end_all_of", id=acceptance, because=f"acceptance {acceptance} was revoked by {by}: {reason}")
    _run(journal, "revoke", id=acceptance, by=by, reason=reason)


def findings_of(journal: PgConnection, acceptance: str) -> list[AcceptedFinding]:
    """Return the findings that an acceptance was asked for."""
    return records(AcceptedFinding, _run(journal, "findings_of", id=acceptance))


def end_expired(journal: PgConnection, pipeline: str) -> None:
    """End what was accepted until a moment that has passed."""
    _run(journal, "end_expired", pipeline=pipeline)


def end(journal: PgConnection, window: Window, reasons: Mapping[tuple[str, str], str]) -> None:
    """End findings of a revision that stand, by hop and key hash, each with its reason."""
    _run(
        journal,
        "end_findings",
        **scope(window),
        hops=[hop for hop, _ in reasons],
        hashes=[key_hash for _, key_hash in reasons],
        reasons=list(reasons.values()),
    )


def end_whole(journal: PgConnection, window: Window) -> None:
    """End what stands of findings of a revision that need it no more, as their keys are whole."""
    _run(journal, "end_whole", **scope(window))


def pass_on(journal: PgConnection, window: Window) -> None:
    """Apply what was accepted of a window to a revision that was just judged, where it found the same; end the
    rest, and what this window refutes of earlier ones. No answer or revocation is taken meanwhile."""
    windows.lock_pipeline(journal, window.pipeline)
    for row in _run(journal, "standing_of_number", **scope(window)):
        stood, is_same = record(AcceptedFinding, row), row.verdict_now is not None and _is_as_accepted(row)
        place = {"acceptance": row.acceptance, "revision": row.revision, "hop": row.hop, "key_hash": row.key_hash}
        _run(journal, "pass_on", because=_reason_of_passing(window, row.verdict_now, is_same=is_same), **place)
        if is_same:
            kept = (row.acceptance, window.pipeline, window.number, window.revision)
            insert_many(journal, "acceptance", "insert_findings", _rows(kept, [stood], stands=True))
    _run(journal, "end_met_later", **scope(window), verdicts=[verdict.value for verdict in ACCEPTABLE])


def _reason_of_passing(window: Window, verdict: str | None, *, is_same: bool) -> str:
    revision = f"revision {window.revision} of the window"
    if is_same:
        return f"it is accepted in {revision}"
    return f"{revision} found " + ("nothing wrong with it" if verdict is None else f"the key changed: {verdict}")


def _is_as_accepted(row: Any) -> bool:
    finding = Finding(
        hop=row.hop,
        key=row.key,
        key_hash=row.key_hash,
        verdict=Verdict(row.verdict_now),
        cause=Cause(row.cause_now),
        evidence=StoredEvidence(row.evidence_now),
    )
    return bool(fingerprint(finding) == row.fingerprint)


def standing(journal: PgConnection, pipeline: str) -> list[StandingFindings]:
    """Return what stands of a pipeline's windows, in their newest revisions, oldest window first."""
    rows = _run(journal, "standing", pipeline=pipeline)
    return [
        StandingFindings(window=window, revision=revision, findings=records(AcceptedFinding, of_window))
        for (window, revision), of_window in groupby(rows, key=_by_window)
    ]


def unanswered(journal: PgConnection, pipeline: str) -> list[OpenedAgain]:
    """Return the revisions of windows with accepted findings that are open again and that were not judged since."""
    rows = _run(journal, "unanswered", pipeline=pipeline)
    return [
        OpenedAgain(window=window, revision=revision, reasons={row.ended_because: row.keys for row in of_window})
        for (window, revision), of_window in groupby(rows, key=_by_window)
    ]


def set_answered(journal: PgConnection, pipeline: str, number: int, revision: int) -> None:
    """Note that a revision was judged again, or is the newest of its window no more."""
    _run(journal, "set_answered", pipeline=pipeline, number=number, revision=revision)


def count_accepted(journal: PgConnection, window: Window, *, with_doubled: bool = True) -> dict[str, dict[str, int]]:
    """Count the findings of a revision that are accepted now: hop → verdict → number. `with_doubled`: those that verify
    found, too, which no result of the comparison counts."""
    counts: dict[str, dict[str, int]] = {}
    for hop, verdict, keys in _run(journal, "count_accepted", **scope(window), with_doubled=with_doubled):
        counts.setdefault(hop, {})[verdict] = keys
    return counts


def count_standing(journal: PgConnection, window: Window) -> int:
    """Count the findings of a revision that stand."""
    return int(single_value(_run(journal, "count_standing", **scope(window))))


def standing_words(journal: PgConnection, window: Window) -> list[StandingWord]:
    """Return the acceptances of which findings of a revision are accepted now, oldest first."""
    return records(StandingWord, _run(journal, "standing_words", **scope(window)))


def opened_again(journal: PgConnection, window: Window) -> dict[str, int]:
    """Count the findings of a revision that were accepted and are open again, by the reason."""
    return dict(_run(journal, "ended_of", **scope(window)))


def accepted_elsewhere(journal: PgConnection, window: Window, key_hashes: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Return hop and key hash of the findings of some keys that are accepted now in other windows."""
    if not key_hashes:
        return frozenset()
    given = {"pipeline": window.pipeline, "number": window.number, "hashes": list(key_hashes)}
    return frozenset((hop, key_hash) for hop, key_hash in _run(journal, "accepted_elsewhere", **given))


def taken_meanwhile(journal: PgConnection, acceptance: str) -> int:
    """Count the findings of one that waits which another acceptance has taken, or which are not open any more."""
    return int(single_value(_run(journal, "taken_meanwhile", id=acceptance)))


def words_on_key(journal: PgConnection, pipeline: str, key_hash: str) -> list[KeyWord]:
    """Return what people said of a key, oldest first."""
    return records(KeyWord, _run(journal, "words_on_key", pipeline=pipeline, key_hash=key_hash))
