"""Run the steps of an acceptance as tasks of Airflow: ask, and carry out what a person said.

DAG files import this module, so what the steps need is imported when they run.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from makewhole.model.acceptance import Acceptance, AcceptanceState, Selection, is_finding_id
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import Cause
from makewhole.model.window import Window, WindowState
from makewhole.orchestration.access import requested_name
from makewhole.orchestration.steps.publishing import note_revoked
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_own_pipeline
from makewhole.orchestration.task_ids import ACCEPT, APPROVE

if TYPE_CHECKING:
    from makewhole.window.certifying.certify import ClosedWindow
    from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)


@step
def plan() -> str:
    """Write what the form of the run asks for, or take an acceptance back; return the id of the task to go on with."""
    context = get_current_context()
    pipeline = load_own_pipeline(requested_name(context))
    return _revoke(context, pipeline) if context["params"]["revoke"] else _ask(context, pipeline)


def requested_pipeline(context: Mapping[str, Any]) -> Pipeline:
    """Read the pipeline of a run: of its DAG, or of its form."""
    from makewhole.config.pipeline_file import find_pipeline

    return find_pipeline(requested_name(context))


def _ask(context: Mapping[str, Any], pipeline: Pipeline) -> str:
    from makewhole.compensation.acceptance.ask import AcceptRequest, ask
    from makewhole.compensation.acceptance.question import acceptance_request
    from makewhole.config.people.groups import read_groups

    form = context["params"]
    if not form["window"]:
        raise RefusedError("the form names no window; its number is in `makewhole windows`")
    request = AcceptRequest(
        pipeline=pipeline.name,
        window=int(form["window"]),
        selection=selection_of(form),
        reason=form["reason"] or "",
        until=_moment(form["until"]),
        asked_by=_asker(context),
        run=context["dag_run"].run_id,
    )
    asked = ask(pipeline, request, read_groups())
    for sentence in asked.left:
        logger.warning("%s", sentence)
    logger.info(
        "acceptance %s of %d findings: %s", asked.acceptance.id, asked.acceptance.findings, asked.acceptance.state
    )
    context["ti"].xcom_push(key="approval", value=acceptance_request(pipeline, asked, read_groups()))
    return APPROVE if asked.waits else ACCEPT


def selection_of(form: Mapping[str, Any]) -> Selection:
    """Return the findings that a form names.

    Raises:
        RefusedError: it names none, or in more than one way, or by a key, which Airflow would keep after an erasure.
    """
    names = tuple(str(name).strip() for name in form["findings"] or ())
    ways = [bool(names), bool(form["cause"]), bool(form["all"])]
    if sum(ways) != 1:
        raise RefusedError("name what is accepted in one way: findings by their ids, a cause, or all")
    if not all(map(is_finding_id, names)):
        raise RefusedError(
            "name findings in a form by their ids, as `makewhole findings` shows them: Airflow keeps the form, and a "
            "key would stay in it when it is erased. `makewhole accept --finding KEY` finds the ids; delete this run"
        )
    try:
        cause = Cause(form["cause"]) if form["cause"] else None
    except ValueError:
        known = ", ".join(sorted(member.value for member in Cause))
        raise RefusedError(f"{form['cause']} is no cause; there are {known}") from None
    return Selection(names=names, cause=cause)


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RefusedError(f"until: {text} is no moment; write it as 2026-12-31T18:00:00+00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _asker(context: Mapping[str, Any]) -> str:
    """Return who started the run, as Airflow knows them."""
    name = context["dag_run"].triggering_user_name
    if not name:
        raise RefusedError(
            "Airflow does not say who started this run, and an acceptance needs a name; start it as a user"
        )
    return str(name)


def _revoke(context: Mapping[str, Any], pipeline: Pipeline) -> str:
    from makewhole.compensation.acceptance.answer import revoke
    from makewhole.config.people.groups import read_groups
    from makewhole.journal.deployment.address import journal_dsn

    known = _acceptance_of(pipeline, str(context["params"]["revoke"]).strip())
    reason = context["params"]["reason"] or ""
    revoked = revoke(journal_dsn(), known.id, _asker(context), reason, pipeline.approval, read_groups())
    logger.info("acceptance %s was revoked by %s", revoked.id, revoked.revoked_by)
    return ACCEPT


def _acceptance_of(pipeline: Pipeline, acceptance: str) -> Acceptance:
    """Return an acceptance of this pipeline; who may answer differs from pipeline to pipeline."""
    from makewhole.journal import acceptances
    from makewhole.journal.database import connect

    with connect() as journal:
        known = acceptances.get(journal, acceptance)
    if known.pipeline != pipeline.name:
        raise RefusedError(f"acceptance {acceptance} is of {known.pipeline}, not of {pipeline.name}")
    return known


@step
def accept() -> dict[str, Any]:
    """Certify the window with what is accepted, or open it again after a revocation; fail where it stays open though
    findings were accepted.

    Raises:
        AirflowFailException: the window is not certified all the same.
    """
    from makewhole.compensation.acceptance.carry_out import accept_findings, open_again_after
    from makewhole.journal import acceptances
    from makewhole.journal.database import connect
    from makewhole.orchestration.deployment.connections import signing_key

    context = get_current_context()
    pipeline = load_own_pipeline(requested_name(context))
    revoked = context["params"]["revoke"]
    if revoked:
        known = _acceptance_of(pipeline, str(revoked).strip())
        return _result(pipeline, known, open_again_after(known, context_of(pipeline), signing_key()))
    with connect() as journal:
        asked = acceptances.by_request(journal, pipeline.name, context["dag_run"].run_id)
    if asked is None:
        raise RefusedError("this run asked for no acceptance; see its task `plan`")
    if asked.state is not AcceptanceState.STANDING:
        raise RefusedError(f"acceptance {asked.id} is {asked.state.value}, so nothing is accepted; ask again")
    closed = accept_findings(asked, context_of(pipeline), signing_key())
    if closed.state is not WindowState.CERTIFIED:
        raise AirflowFailException(
            f"acceptance {asked.id} stands, and window {asked.window} of {asked.pipeline} is {closed.state.value}: "
            f"{closed.reason}"
        )
    return _result(pipeline, asked, closed)


def context_of(pipeline: Pipeline) -> "Callable[[Window], WindowContext]":
    """Return what makes the context of a window of a pipeline, whose connections this process has."""
    from makewhole.window.context import window_context

    return lambda window: window_context(window, pipeline)


def _result(pipeline: Pipeline, acceptance: Acceptance, closed: "ClosedWindow") -> dict[str, Any]:
    certificate = closed.certificate
    if pipeline.publish:
        note_revoked(pipeline, get_current_context())
    for revocation in closed.revoked:
        logger.warning("certificate %d is revoked: %s", revocation.revokes, revocation.uri)
    if certificate is None:
        logger.warning("window %d is %s: %s", acceptance.window, closed.state.value, closed.reason)
    else:
        logger.info(
            "window %d is certified, with %d accepted: %s", acceptance.window, certificate.accepted, certificate.uri
        )
    return {
        "acceptance": acceptance.id,
        "window": acceptance.window,
        "state": closed.state.value,
        "accepted": 0 if certificate is None else certificate.accepted,
        "certificate": None if certificate is None else certificate.uri,
    }
