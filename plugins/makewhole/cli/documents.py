"""Build what `--json` prints of windows and findings, read from the journal."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from makewhole.cli.airflow_api import log_url
from makewhole.compensation.planning.unanswered import Unanswered
from makewhole.compute.judge.copier_commits import COPIER
from makewhole.journal import acceptances, certificates, continuations, incidents, plans, step_failures, windows
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results import gate_answers, handover_keys, hop_results, snapshot_manifests
from makewhole.journal.step_failures import StepFailure
from makewhole.kafka.retention import Deadline
from makewhole.lake.storage import Storage
from makewhole.model.acceptance import Acceptance, AcceptanceState, finding_id
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem
from makewhole.model.incident import Incident
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.text import is_hop_name
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection
from makewhole.window.context import find_pipeline
from makewhole.window.masks import ShownValues
from makewhole.window.readers.partitions_missing import PARTITIONS
from makewhole.window.readers.sink_text import SINK


def hop_ends(hop: str) -> dict[str, str]:
    """Return `{"from", "to"}` of a hop's name."""
    source, target = hop.split("→")
    return {"from": source, "to": target}


def window_document(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Describe one revision: `counts` as found, `after` as verified after compensation, `gate` the last answer."""
    reconciled = hop_results.results(journal, window, hop_results.RECONCILED)
    after = hop_results.results(journal, window, hop_results.VERIFIED)
    gates = gate_answers.gate_reports(journal, window)
    last = gates.get(hop_results.VERIFIED) or gates.get(hop_results.RECONCILED)
    return {
        "pipeline": window.pipeline,
        "window": window.number,
        "revision": window.revision,
        "state": window.state.value,
        "reason": window.reason,
        "from": None if window.start is None else window.start.isoformat(),
        "to": window.end.isoformat(),
        "hops": [
            {
                **hop_ends(hop),
                "counts": vars(result.counts),
                "after": vars(after[hop].counts) if hop in after else None,
                **{name: result.files[name] for name in (COPIER, PARTITIONS, SINK) if name in result.files},
            }
            for hop, result in sorted(reconciled.items())
            if is_hop_name(hop)
        ],
        "topics": [
            {"point": name, "keys": result.counts.source_keys, "records": result.counts.source_rows}
            for name, result in sorted(reconciled.items())
            if not is_hop_name(name)
        ],
        "gate": None if last is None else last.answer.value,
        "gate_found": gates[hop_results.RECONCILED].answer.value if hop_results.RECONCILED in gates else None,
        "handed_over": _handed_over(journal, window),
        "failures": [] if last is None else list(last.failures),
        "incidents": [incident_document(incident) for incident in incidents.of(journal, window)],
        "accounting": _accounting(journal, window),
        "looked_at": snapshot_manifests.looked_at(snapshot_manifests.snapshots(journal, window)),
        "reused": snapshot_manifests.what_was_reused(snapshot_manifests.snapshots(journal, window)),
        "continuations": [
            {"run": continuation.run, "asked_by": continuation.asked_by, "at": continuation.began_at.isoformat()}
            for continuation in continuations.of(journal, window)
        ],
        "failed_steps": [failure_document(failure) for failure in step_failures.of(journal, window)],
        "plan": _plan(journal, window),
        "accepted": _accepted(journal, window),
        "older_open": _older_open(journal, window),
        "certificate": _certificate(journal, window),
        "revoked": _revoked(journal, window),
    }


def _handed_over(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return how many keys in flight the next window judges, and since when the first of them waits; by hop, too."""
    by_hop = handover_keys.waiting_by_hop(journal, window)
    first = min((waiting.since for waiting in by_hop.values()), default=None)
    return {
        "keys": sum(waiting.keys for waiting in by_hop.values()),
        "since": None if first is None else first.isoformat(),
        "hops": [
            {**hop_ends(hop), "keys": waiting.keys, "since": waiting.since.isoformat()}
            for hop, waiting in by_hop.items()
        ],
    }


def incident_document(incident: Incident) -> dict[str, Any]:
    """Describe an incident, as stored and in words."""
    return {
        "kind": incident.kind.value,
        "point": incident.point,
        "topic": incident.topic,
        "topic_id": incident.topic_id,
        "partition": incident.partition,
        "lo": incident.lo,
        "hi": incident.hi,
        "detail": dict(incident.detail),
        "message": incident_sentence(incident),
        "settled_by": settled_by(incident),
    }


def _accounting(journal: PgConnection, window: Window) -> dict[str, list[dict[str, Any]]]:
    """Return the accounting of every range, by topic point."""
    manifests = snapshot_manifests.snapshots(journal, window)
    return {
        point: [
            {**_place(part), **sums}
            for part in parts
            if (sums := manifests.get(point, {}).get("accounting_by_partition", {}).get(str(part.partition)))
        ]
        for point, parts in sorted(window.ranges.items())
    }


def _place(part: PartitionRange) -> dict[str, Any]:
    return {"topic": part.topic, "partition": part.partition, "lineage": part.lineage, "lo": part.lo, "hi": part.hi}


def _accepted(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return how many findings of a revision stay as they are by a person's word, by hop and verdict, the words, and
    how many that were accepted are `open_again`, by the reason."""
    by_hop = acceptances.count_accepted(journal, window)
    return {
        "findings": sum(sum(counts.values()) for counts in by_hop.values()),
        "hops": [{**hop_ends(hop), "counts": counts} for hop, counts in by_hop.items()],
        "acceptances": [
            {
                "id": word.id,
                "findings": word.findings,
                "by": word.decided_by,
                "at": word.decided_at.isoformat(),
                "asked_by": word.asked_by,
                "reason": word.reason,
                "until": None if word.until is None else word.until.isoformat(),
            }
            for word in acceptances.standing_words(journal, window)
        ],
        "open_again": acceptances.opened_again(journal, window),
    }


def acceptance_document(acceptance: Acceptance) -> dict[str, Any]:
    """Describe an acceptance: what was asked, who said what, and since when it does not stand any more."""
    moments = ("until", "asked_at", "decided_at", "revoked_at")
    times = {name: moment if (moment := getattr(acceptance, name)) is None else moment.isoformat() for name in moments}
    is_over = acceptance.state is AcceptanceState.STANDING and acceptance.has_expired
    document = vars(acceptance) | times | {"state": "expired" if is_over else acceptance.state.value}
    return {name: value for name, value in document.items() if name != "has_expired"}


def _plan(journal: PgConnection, window: Window) -> dict[str, Any] | None:
    stored = plans.frozen_plan(journal, window.pipeline, window.number, window.revision)
    if stored is None:
        return None
    plan = stored.plan
    return {
        "id": plan.id,
        "sha256": plan.sha256,
        "state": plan.state.value,
        "reason": plan.reason,
        "actions": dict(plan.counts),
        "asked_until": None if stored.asked_until is None else stored.asked_until.isoformat(),
    }


def failure_document(failure: StepFailure) -> dict[str, Any]:
    """Describe why a step did not end well, and where its log is."""
    return {
        "step": failure.step,
        "dag": failure.dag,
        "run": failure.run,
        "at": failure.failed_at.isoformat(),
        "is_permanent": failure.is_permanent,
        "reason": failure.reason,
        "log": log_url(failure.dag, failure.run, failure.step),
    }


def _revoked(journal: PgConnection, window: Window) -> dict[str, Any] | None:
    """Return which certificate of a window was revoked last, whatever its revision, by which entry, when and why."""
    revocation = certificates.last_revocation(journal, window.pipeline, window.number)
    if revocation is None:
        return None
    return {
        "certificate": revocation.revokes,
        "by": revocation.ordinal,
        "at": None if revocation.issued_at is None else revocation.issued_at.isoformat(),
        "reason": (revocation.body.get("because") or {}).get("reason"),
    }


def _certificate(journal: PgConnection, window: Window) -> dict[str, Any] | None:
    certificate = certificates.of_revision(journal, window)
    if certificate is None:
        return None
    return {
        "ordinal": certificate.ordinal,
        "accepted": certificate.accepted,
        "digest": certificate.digest,
        "sha256": certificate.sha256,
        "uri": certificate.uri,
        "signed_by": certificate.signed_by,
        "revoked_by": certificates.revoked_by(journal, window.pipeline, certificate.ordinal),
        "reach": certificate.body.get("reach"),
        "older_open": certificate.body.get("older_open"),
    }


def unanswered_document(unanswered: Unanswered) -> dict[str, Any]:
    """Describe open findings that are only reported: what would answer them, as data and in words."""
    suggestion = unanswered.suggestion
    return {
        **hop_ends(unanswered.hop),
        "verdict": suggestion.verdict,
        "keys": unanswered.keys,
        "remedy": None if suggestion.remedy is None else suggestion.remedy.value,
        "line": suggestion.line,
        "does": suggestion.does,
        "drafted": unanswered.drafted,
        "actions": unanswered.actions,
        "refused": {str(refusal): count for refusal, count in unanswered.refused.items()},
        "refused_as_a_whole": unanswered.refused_as_a_whole,
        "needs_approval": unanswered.needs_approval,
        "messages": unanswered.sentences(),
    }


def _older_open(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return how many windows and findings before this one are open now, and since when."""
    older = windows.older_open(journal, window.pipeline, window.number)
    return vars(older) | {"since": None if older.since is None else older.since.isoformat()}


def shown_values(pipeline: str) -> ShownValues:
    """Return how the values of a pipeline are shown, as far as its file and the storage are known on this machine: of a
    pipeline whose file is not, every value is hidden."""
    described = None
    with suppress(MakewholeError):
        described = find_pipeline(pipeline)
    storage = None
    if described is None or described.mask:
        with suppress(ConfigurationError):
            storage = Storage.from_environment()
    return ShownValues(described, storage)


def finding_document(
    window: Window, item: JudgedFinding, deadline: Deadline | None = None, shown: ShownValues | None = None
) -> dict[str, Any]:
    """Describe one finding, its outcome, and until when Kafka has its original. `shown`: how its values are."""
    finding = item.finding
    return {
        "window": window.number,
        "revision": window.revision,
        "id": finding_id(finding.hop, finding.key_hash),
        "hop": hop_ends(finding.hop),
        "key": finding.key,
        "verdict": finding.verdict.value,
        "cause": finding.cause.value,
        "outcome": item.outcome,
        "reason": item.reason,
        "acceptance": item.acceptance,
        "original": None if deadline is None else deadline_document(deadline),
        "evidence": dict(finding.evidence if shown is None else shown.evidence(finding.evidence)),
    }


def deadline_document(deadline: Deadline) -> dict[str, Any]:
    """Describe what becomes of a record in the log; `at` is the earliest moment."""
    return {
        "fate": deadline.fate.value,
        "at": None if deadline.at is None else deadline.at.isoformat(),
        "may_be_earlier": deadline.may_be_earlier,
    }


def chosen_windows(
    journal: PgConnection, pipeline: str, number: int | None, revision: int | None, most: int | None = None
) -> Iterator[Window]:
    """Yield the newest revision of every window (of the newest ones, where `most` says how many), oldest first; or of
    one window; or one revision of it.

    Raises:
        ConfigurationError: nothing is known of the pipeline, or of the window.
    """
    if number is not None and revision is not None:
        yield windows.load(journal, pipeline, number, revision)
        return
    chosen = windows.newest(journal, pipeline, most, number)[::-1]
    there_are = len(chosen) or windows.count(journal, pipeline)
    if not there_are:
        find_pipeline(pipeline)
    if number is not None and not chosen:
        raise ConfigurationError(
            [
                Problem(
                    file="journal",
                    path=pipeline,
                    found=f"has no window {number}",
                    remedy=f"There are {there_are}; see `makewhole windows {pipeline}`",
                )
            ]
        )
    yield from chosen
