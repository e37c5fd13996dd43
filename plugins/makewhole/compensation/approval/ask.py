"""Make the question of a run's approval task: its page, with a dry run, and the people who may answer."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from makewhole.compensation.approval.page import SAMPLES, ApprovalPage, ApprovalQuestion, approval_page
from makewhole.compensation.approval.rights import ApprovalRights, rights_of
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.preview.dry_report import DryRun
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.config.people.groups import read_groups
from makewhole.journal.deployment.address import journal_dsn
from makewhole.model.errors import MakewholeError
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Plan, PlanState
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)
_ANYBODY = "anybody who may run this DAG"


def rights_in(pipeline: Pipeline) -> ApprovalRights:
    """Return the people and groups of the pipeline's policy.

    Raises:
        RefusedError: it names a group that has no person in it.
        ConfigurationError: the file of the groups has problems.
    """
    return rights_of(pipeline.approval, read_groups())


def approval_request(
    context: WindowContext, plan: Plan, about: Sequence[str] = (), reported: Sequence[str] = ()
) -> dict[str, str]:
    """Return plan id, hash and page for an XCom: no keys, no values. A plan that needs no answer gets no dry run.
    `about`: more sentences for the page; `reported`: those on findings that are only reported.

    Raises:
        RefusedError: no person could answer, see `rights_in`.
    """
    waits = plan.state is PlanState.AWAITING_APPROVAL
    who = (str(rights_in(context.pipeline)) or _ANYBODY) if waits else "no person is asked"
    if waits and context.pipeline.approval.four_eyes:
        who += ", but for who asked for the run"
    question = ApprovalQuestion(
        plan=plan,
        label=context.window.label,
        about=(
            context.pipeline.description,
            f"Window {context.window.number}: {context.window.start or 'the beginning'} to {context.window.end}",
            *about,
        ),
        who=who,
        dry_run=_dry_run_or_reason(context, plan) if waits else "it waits for no answer",
        dry_run_at=datetime.now(UTC),
        reported=reported,
    )
    page = approval_page(question)
    return {
        "pipeline": context.pipeline.name,
        "plan": plan.id,
        "sha256": plan.sha256,
        "subject": page.subject,
        "body": page.body,
    }


def page_record(shown: Mapping[str, str], run: str) -> dict[str, str]:
    """Return what the person was shown, for the journal: the page and its digest."""
    page = ApprovalPage(subject=shown["subject"], body=shown["body"])
    return {"subject": page.subject, "body": page.body, "page_sha256": page.sha256, "run": run}


def _dry_run_or_reason(context: WindowContext, plan: Plan) -> DryRun | str:
    """Make the dry run, or return why there is none: the question is asked even when a target does not answer."""
    targets = targets_of(context.pipeline, context.connections)
    try:
        return dry_run(journal_dsn(), plan.id, targets, samples=SAMPLES, progress=_log_progress)
    except MakewholeError as error:
        logger.warning("plan %s: no dry run: %s", plan.id, error)
        return str(error)


def _log_progress(done: int, total: int) -> None:
    logger.info("dry run: %d of %d actions looked at", done, total)
