"""Certify a window: close it with a certificate, or give the reason why it stays open.

It reads the journal only. A step that failed committed nothing there, so the window cannot be certified by mistake.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.gate.counts import is_brought_back
from makewhole.journal import acceptances, certificates, incidents, plans, step_failures, windows
from makewhole.journal.certificates import ChainEntry
from makewhole.journal.findings import window_findings
from makewhole.journal.results import gate_answers, handover_keys, hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.windows import OlderOpen
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import CANNOT_BE_READ
from makewhole.model.verdict import GAPS, Verdict
from makewhole.model.window import Window, WindowState
from makewhole.signing.keys import SigningKey, sha256_of
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_chain import ChainWriter
from makewhole.window.certifying.certificate_content import (
    accepted_document,
    certified_content,
    final_results,
    judged_with,
)
from makewhole.window.configuration import judging_sha256

_INCIDENTS_LISTED_MOST = 5
_REPAIR_STEPS = ("plan", "compensate", "verify")
_CONTINUED = "The next run goes on with this window before its own"
_WAITING = f"{_CONTINUED}, and no later window is compared before it"


@dataclass(frozen=True, kw_only=True)
class ClosedWindow:
    """The state that a window was given. `reason` is None only for a certified one. `handed_over`: keys in flight that
    the next window judges. `older_open` is what windows before it leave open.

    `revoked` are the revocations of older certificates of the window, appended to the chain with this state.
    """

    state: WindowState
    reason: str | None
    certificate: ChainEntry | None = None
    handed_over: int = 0
    older_open: OlderOpen | None = None
    revoked: Sequence[ChainEntry] = ()


def certify_window(
    journal: PgConnection, pipeline: Pipeline, window: Window, storage: Storage, key: SigningKey
) -> ClosedWindow:
    """Decide the state of a revision from what the steps committed, and issue the certificate when it is certified.

    A revision that ends with gaps revokes its own certificate and those that older revisions of the window have. It
    commits, and then writes the anchors of the new entries. Called again, it returns the certificate that was issued
    while that stands and nothing that was judged since refutes it, or the state that an undo has given the window
    since, with anchors that were left out.

    Raises:
        CorruptionError: the chain in the journal is not the one beside the files.
    """
    chain = ChainWriter(journal=journal, storage=storage, key=key)
    chain.begin(pipeline.name)
    state, reason = decide(journal, pipeline, window)
    given = certificates.of_revision(journal, window)
    if given is not None:
        closed = _closed_before(journal, window, given)
        if closed.certificate is None or state is not WindowState.GAPS:
            return closed
    certificate = chain.certify(pipeline, window) if state is WindowState.CERTIFIED else None
    revoked = chain.revoke(window, state, reason or "") if state is WindowState.GAPS else []
    windows.close(journal, window, state, reason)
    closed = ClosedWindow(
        state=state,
        reason=reason,
        certificate=certificate,
        handed_over=handed_over_keys(journal, window),
        older_open=windows.older_open(journal, window.pipeline, window.number),
        revoked=revoked,
    )
    journal.commit()
    chain.publish([*([certificate] if certificate else []), *revoked])
    return closed


def _closed_before(journal: PgConnection, window: Window, given: ChainEntry) -> ClosedWindow:
    """Return how a revision stands that has a certificate: with it, or without it where it was revoked since."""
    now = windows.load(journal, window.pipeline, window.number, window.revision)
    state, reason = now.state, now.reason
    by = certificates.revoked_by(journal, window.pipeline, given.ordinal)
    if state is WindowState.CERTIFIED and by is not None:
        state, reason = WindowState.NOT_KNOWN, _revocation_reason(journal, given, by)
    return ClosedWindow(
        state=state,
        reason=reason,
        certificate=given if state is WindowState.CERTIFIED else None,
        handed_over=handed_over_keys(journal, window),
        older_open=windows.older_open(journal, window.pipeline, window.number),
    )


def _revocation_reason(journal: PgConnection, given: ChainEntry, by: int) -> str:
    revocation = certificates.entry(journal, given.body["pipeline"], by)
    because = {} if revocation is None else revocation.body.get("because", {})
    why = f": revision {because['revision']} ended later, {because['state']} ({because['reason']})" if because else ""
    return (
        f"certificate {given.ordinal} of this revision was revoked by entry {by} of the chain{why}. The newest "
        "revision of the window says what is true"
    )


def certify_again(
    journal: PgConnection,
    pipeline: Pipeline,
    window: Window,
    storage: Storage,
    key: SigningKey,
    because: str,
    *,
    also_older: bool = False,
) -> ClosedWindow:
    """Decide the state of a closed revision again, after its findings were judged again: revoke the certificates that
    the window has, and issue another one where it is certified. One that stands and says the same is left alone. It
    commits, and then writes the anchors. `because` begins the reason of a window that is not certified.

    Of a revision that is not the newest (`also_older`) nothing is certified: where it is open by now, the newest one is
    opened with it if it was certified, as it had found whole what is open.

    Raises:
        RefusedError: a later revision of the window was opened meanwhile; it says what is true.
        CorruptionError: the chain in the journal is not the one beside the files.
    """
    chain = ChainWriter(journal=journal, storage=storage, key=key)
    chain.begin(pipeline.name)
    newest = windows.newest(journal, pipeline.name, number=window.number)[0]
    is_older = newest.revision != window.revision
    if is_older and not also_older:
        raise RefusedError(f"{window.label} is judged again as revision {newest.revision}, whose run says what is true")
    state, why = decide(journal, pipeline, window)
    is_certified = state is WindowState.CERTIFIED
    reason = None if is_certified else f"{because}: {why}"
    content = certified_content(journal, window) if is_certified and not is_older else None
    certificate = None if content is None else _standing_with(journal, window, content)
    stays = certificate is not None or (is_certified and is_older)
    revoked = [] if stays else chain.revoke(window, state, reason or because, also_later=is_older)
    issued = [chain.certify(pipeline, window)] if is_certified and not stays else []
    is_later_open = is_older and not is_certified and newest.state is WindowState.CERTIFIED
    for revision in (window, newest) if is_later_open else (window,):
        windows.close(journal, revision, state, reason)
    closed = ClosedWindow(
        state=state,
        reason=reason,
        certificate=next(iter(issued), certificate),
        handed_over=handed_over_keys(journal, window),
        older_open=windows.older_open(journal, window.pipeline, window.number),
        revoked=revoked,
    )
    journal.commit()
    chain.publish([*revoked, *issued])
    return closed


def _standing_with(journal: PgConnection, window: Window, content: Mapping[str, object]) -> ChainEntry | None:
    """Return the newest standing certificate of a revision where it says what is to be certified, words included."""
    digest, words = sha256_of(dict(content)), accepted_document(journal, window) or None
    standing = certificates.standing(journal, window.pipeline, window.number)
    of_revision = [certificate for certificate in standing if certificate.revision == window.revision]
    same = [entry for entry in of_revision[-1:] if entry.digest == digest and entry.body.get("accepted") == words]
    return next(iter(same), None)


def handed_over_keys(journal: PgConnection, window: Window) -> int:
    """Return how many keys this revision leaves to the next window, over all hops."""
    return sum(waiting.keys for waiting in handover_keys.waiting_by_hop(journal, window).values())


def decide(journal: PgConnection, pipeline: Pipeline, window: Window) -> tuple[WindowState, str | None]:
    """Return the state that the committed evidence allows, with the reason when it is not `certified`."""
    results, gates = final_results(journal, window), gate_answers.gate_reports(journal, window)
    if set(results) != set(pipeline.judged_names):
        why = _failure(journal, window) or "the comparison did not finish; see the failed task of this run"
        return WindowState.ERROR, f"{why}. {_WAITING}"
    first = gates.get(hop_results.RECONCILED)
    if first is None or first.answer is GateAnswer.ERROR:
        not_asked = _failure(journal, window) or "it was not asked; see the failed task of this run"
        failures = not_asked if first is None else "; ".join(first.failures)
        return WindowState.ERROR, f"the gate could not answer: {failures.rstrip('.')}. {_CONTINUED}"
    last = gates.get(hop_results.VERIFIED, first)
    if last.answer is GateAnswer.ERROR:
        return WindowState.ERROR, (
            f"the gate could not answer after compensation: {'; '.join(last.failures).rstrip('.')}. {_CONTINUED}"
        )
    blocking = [incident for incident in incidents.of(journal, window) if incident.blocks(pipeline)]
    refused = [incident for incident in blocking if incident.is_refused(pipeline)]
    if any(incident.kind is not IncidentKind.LEADER_CHANGED for incident in blocking if incident not in refused):
        return WindowState.NOT_KNOWN, _incident_reason(blocking, results)
    failed = "; ".join(last.failures) if last.answer is not GateAnswer.PASS else _open_again(journal, window, last)
    if failed is not None:
        return _uncertified_state(journal, pipeline, window, failed, is_known=bool(refused))
    if blocking:
        return WindowState.NOT_KNOWN, _incident_reason(blocking, results)
    changed = _changed_configuration(journal, pipeline, window)
    if changed:
        return WindowState.NOT_KNOWN, changed
    refuted = _refutation(journal, window)
    if refuted is not None:
        return WindowState.NOT_KNOWN, refuted
    pending = sum(result.counts.pending for result in results.values())
    if pending and handover_keys.is_overtaken(journal, window):
        return WindowState.NOT_KNOWN, (
            f"{pending} keys are still in flight, and window {window.number + 1}, which would have judged them, was "
            "compared already; run this window again when they had time to arrive"
        )
    return WindowState.CERTIFIED, None


def _failure(journal: PgConnection, window: Window, steps: Sequence[str] = ()) -> str | None:
    """Return which step did not end well, in which run, and why; of `steps` alone where any are given. None: none, or
    the task was killed and left no reason."""
    known = (failure for failure in step_failures.of(journal, window) if not steps or failure.step in steps)
    return next((failure.sentence() for failure in known), None)


def _open_again(journal: PgConnection, window: Window, gate: GateReport) -> str | None:
    """Return which findings were accepted when the gate was asked, and are open by now; None: none."""
    now = acceptances.count_accepted(journal, window)
    gone = [
        f"{hop}: {counted - left} {verdict}"
        for hop, counts in sorted(gate.accepted.items())
        for verdict, counted in sorted(counts.items())
        if counted > (left := now.get(hop, {}).get(verdict, 0))
    ]
    if not gone:
        return None
    return (
        f"what was accepted when the gate was asked is open again since ({', '.join(gone)}); accept it again, or run "
        "the window again"
    )


def _refutation(journal: PgConnection, window: Window) -> str | None:
    """Return what happened since a revision was opened that its comparison does not show; None: nothing."""
    revision = certificates.gaps_after(journal, window)
    if revision is not None:
        return (
            f"revision {revision} of this window was judged later and ended with gaps, so this one proves nothing any "
            "more; run the window again"
        )
    undo = plans.undone_since(journal, window)
    if undo is not None:
        return (
            f"plan {undo} took back rows of this window after this revision was opened, which may have compared them; "
            "run the window again"
        )
    return None


def _changed_configuration(journal: PgConnection, pipeline: Pipeline, window: Window) -> str | None:
    """Return which steps judged with another configuration than the pipeline has now; None when all had the same."""
    now = judging_sha256(pipeline)
    others = [step for step, digest in judged_with(journal, window).items() if digest != now]
    if not others:
        return None
    return (
        f"what decides a verdict was changed in the file of {pipeline.name} while the window was judged: it was "
        f"another one at {', '.join(others)}. Run the window again"
    )


def _incident_reason(blocking: Sequence[Incident], results: Mapping[str, HopResult]) -> str:
    """Return the reason of a window with blocking incidents: these, what would settle them, and the certain gaps."""
    kind = "partial" if any(incident.is_partial for incident in blocking) else "not proven"
    sentences = [incident_sentence(incident) for incident in blocking]
    more = (
        [f"{len(sentences) - _INCIDENTS_LISTED_MOST} more such places"]
        if len(sentences) > _INCIDENTS_LISTED_MOST
        else []
    )
    remedies = dict.fromkeys(settled_by(incident) for incident in blocking)
    gaps = [
        f"{hop}: {count} {verdict.value}"
        for hop, result in sorted(results.items())
        for verdict in GAPS
        if (count := getattr(result.counts, verdict.value))
    ]
    return ". ".join(
        [
            f"{kind}: {'; '.join([*sentences[:_INCIDENTS_LISTED_MOST], *more])}",
            *(f"{sentence[0].upper()}{sentence[1:]}" for sentence in remedies),
            *([f"Certain all the same: {', '.join(gaps)}"] if gaps else []),
        ]
    )


def _uncertified_state(
    journal: PgConnection, pipeline: Pipeline, window: Window, why: str, *, is_known: bool
) -> tuple[WindowState, str]:
    """Return the state and the reason of a window whose last gate report is not PASS, or holds no more: `why`.
    `is_known`: it has keys with several records in a topic of which the file refuses them."""
    accepted = acceptances.count_accepted(journal, window)
    remaining = sum(
        getattr(result.counts, verdict.value) - accepted.get(hop, {}).get(verdict.value, 0)
        for hop, result in final_results(journal, window).items()
        for verdict in (*GAPS, *((Verdict.VANISHED,) if is_brought_back(pipeline, hop) else ()))
    )
    if not remaining and is_known:
        return WindowState.GAPS, why
    if not remaining:
        return WindowState.NOT_KNOWN, f"not proven: {why}"
    if remaining == window_findings.count_refused_by(journal, window, (*GAPS, Verdict.VANISHED), CANNOT_BE_READ):
        return WindowState.NOT_KNOWN, (
            f"not proven: {why}. Whether they are lost is not known: records that came since and {CANNOT_BE_READ} may "
            "be theirs. Mend their producer, or say how they are read, then run this window again"
        )
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    if stored is not None and stored.plan.reason and stored.plan.state.value in ("refused", "rejected"):
        why = f"{why}. The plan was {stored.plan.state.value}: {stored.plan.reason}"
    plan_only = windows.is_plan_only(journal, window)
    broken = _failure(journal, window, _REPAIR_STEPS)
    if broken is None and stored is not None and stored.plan.state.value in ("approved", "running") and not plan_only:
        broken = f"plan {stored.plan.id} was not ended, and its task left no reason, as when it is killed"
    if broken is not None:
        why = f"{why}. The repair broke off: {broken}"
    if plan_only:
        why = f"{why}. Only a plan was asked for"
    return WindowState.GAPS, why
