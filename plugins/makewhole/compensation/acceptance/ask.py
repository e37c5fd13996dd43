"""Ask that findings be accepted: choose them, freeze what is asked, and decide whether a second person must agree."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.compensation.acceptance.choose import Chosen, choose, judged_window, without
from makewhole.compensation.acceptance.rows_of_keys import KeyRows, read_key_rows
from makewhole.compensation.approval.rights import Groups, others_of, rights_of
from makewhole.config.key_layout import with_layout
from makewhole.journal import acceptances, windows
from makewhole.journal.acceptances import Question
from makewhole.journal.database import connect
from makewhole.model.acceptance import (
    Acceptance,
    AcceptanceState,
    AcceptedFinding,
    Selection,
    by_ids,
    digest_of,
    fingerprint,
)
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Limits, Pipeline
from makewhole.model.text import counted
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_content import judged_with
from makewhole.window.configuration import judging_sha256
from makewhole.window.context import window_context

_ID_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class AcceptRequest:
    """Hold what a person asks for. `run`: the run that asks, once. `until` None: for good."""

    pipeline: str
    window: int
    selection: Selection
    reason: str
    until: datetime | None
    asked_by: str
    run: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """An acceptance as it was asked for: it waits for another person, or stands. `left`: what cannot be accepted."""

    acceptance: Acceptance
    left: Sequence[str] = ()

    @property
    def waits(self) -> bool:
        return self.acceptance.state is AcceptanceState.AWAITING_APPROVAL


def check_request(journal: PgConnection, pipeline: Pipeline, request: AcceptRequest) -> Chosen:
    """Return what a request would accept, by the journal alone; nothing is written, and no right is asked for.

    Raises:
        RefusedError: it cannot be accepted, with the reason.
    """
    _require_sense(request)
    window = judged_window(journal, pipeline.name, request.window)
    _require_same_configuration(journal, pipeline, window)
    chosen = choose(journal, window, request.selection)
    most = max(pipeline.limits.actions, Limits().actions)  # a file that allows no writes may still accept
    if len(chosen.findings) > most:
        raise RefusedError(
            f"{len(chosen.findings):,} findings of {window.label} are more than the limit of {most:,}; find out what "
            "broke before accepting it, then raise compensation.limits.actions"
        )
    return chosen


def ask(pipeline: Pipeline, request: AcceptRequest, groups: Groups, journal_dsn: str | None = None) -> Asked:
    """Write the acceptance of what a request names. Where the rules ask for no second person it stands, by the word of
    who asks. The same run asks once.

    Raises:
        RefusedError: it cannot be accepted, with the reason, or no person could say yes.
    """
    with connect(journal_dsn) as journal:
        windows.lock_pipeline(journal, pipeline.name)
        known = acceptances.by_request(journal, pipeline.name, request.run)
        if known is not None:
            return Asked(acceptance=known)
        acceptances.end_expired(journal, pipeline.name)
        chosen = check_request(journal, pipeline, request)
        context = window_context(chosen.window, pipeline)
        rows = read_key_rows(context, chosen.findings)
        chosen = without(chosen, _changed(chosen, rows), request.selection)
        needs_another = _second_person(journal, pipeline, request, chosen, groups)
        return _put(journal, pipeline, request, chosen, rows, needs_another=needs_another)


def _require_sense(request: AcceptRequest) -> None:
    if not request.reason.strip():
        raise RefusedError("an acceptance needs a reason: --reason TEXT; it is signed into the certificate")
    if not request.asked_by:
        raise RefusedError("an acceptance needs a name; ask as a user of Airflow")
    if request.until is not None and request.until <= datetime.now(UTC):
        raise RefusedError(f"--until {request.until.isoformat()} has passed; name a moment that is still to come")


def _require_same_configuration(journal: PgConnection, pipeline: Pipeline, window: Window) -> None:
    """Refuse a window that was judged by another file: the gate would be asked otherwise than it was.

    Raises:
        RefusedError: what decides a verdict was changed since.
    """
    as_read = with_layout(pipeline, window.key_layout)
    others = [step for step, digest in judged_with(journal, window).items() if digest != judging_sha256(as_read)]
    if others:
        raise RefusedError(
            f"{window.label} was judged by another file than {pipeline.name} has now (at {', '.join(others)}): run the "
            f"window again, then accept what it finds: makewhole run {pipeline.name} --to {window.end.isoformat()}"
        )


def _changed(chosen: Chosen, rows: KeyRows) -> dict[tuple[str, str], str]:
    """Return the findings whose rows are not as they were judged, with the reasons."""
    reasons = {(finding.hop, finding.key_hash): rows.changed_since(finding) for finding in chosen.findings}
    return {
        place: f"{why}, so what was judged is not there any more; run the window again"
        for place, why in reasons.items()
        if why is not None
    }


def _second_person(
    journal: PgConnection, pipeline: Pipeline, request: AcceptRequest, chosen: Chosen, groups: Groups
) -> bool:
    """Return whether another person has to say yes: who asks has no right to, or a window has more accepted findings
    with these than one person may decide on, as of the actions of a plan.

    Raises:
        RefusedError: no other person could say yes.
    """
    rights = rights_of(pipeline.approval, groups)
    together = len(chosen.findings) + acceptances.count_standing(journal, chosen.window)
    if rights.allow(request.asked_by) and together <= pipeline.approval.above_actions:
        return False
    if rights.by and not others_of(rights, request.asked_by):
        raise RefusedError(
            f"{counted(together, 'accepted finding')} of {chosen.window.label} are more than the "
            f"{pipeline.approval.above_actions} of compensation.approval.above_actions, so a second person has to say "
            f"yes, and only {request.asked_by}, who asks, may; name another one in compensation.approval.by"
        )
    return True


def _put(
    journal: PgConnection,
    pipeline: Pipeline,
    request: AcceptRequest,
    chosen: Chosen,
    rows: KeyRows,
    *,
    needs_another: bool,
) -> Asked:
    findings = [
        AcceptedFinding(
            hop=finding.hop,
            key=finding.key,
            key_hash=finding.key_hash,
            verdict=finding.verdict,
            cause=finding.cause,
            fingerprint=fingerprint(finding),
            held=rows.held(finding),
        )
        for finding in sorted(chosen.findings, key=lambda finding: (finding.hop, finding.key_hash))
    ]
    acceptance = Acceptance(
        id=uuid.uuid4().hex[:_ID_DIGITS],
        pipeline=pipeline.name,
        window=chosen.window.number,
        revision=chosen.window.revision,
        sha256=_sha256(chosen, request, findings),
        reason=request.reason.strip(),
        until=request.until,
        findings=len(findings),
        asked_by=request.asked_by,
        asked_at=datetime.now(UTC),
        state=AcceptanceState.AWAITING_APPROVAL if needs_another else AcceptanceState.STANDING,
        decided_by=None if needs_another else request.asked_by,
    )
    question = Question(
        request=request.run,
        expires=pipeline.approval.expires,
        seen={"selection": by_ids(request.selection, chosen.findings).to_json_dict(), "left": chosen.sentences()},
    )
    return Asked(acceptance=acceptances.put(journal, acceptance, findings, question), left=chosen.sentences())


def _sha256(chosen: Chosen, request: AcceptRequest, findings: Sequence[AcceptedFinding]) -> str:
    """Return the digest of all that is asked: an answer is bound to it."""
    return digest_of(
        {
            "pipeline": chosen.window.pipeline,
            "window": chosen.window.number,
            "revision": chosen.window.revision,
            "reason": request.reason.strip(),
            "until": None if request.until is None else request.until.isoformat(),
            "findings": [[finding.hop, finding.key_hash, finding.fingerprint] for finding in findings],
        }
    )
