"""Keep which deployment of Airflow judges a pipeline, so that two at one journal do not judge the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.model.errors import JudgedElsewhereError, Problem
from makewhole.sql import PgConnection, record, records, statements_of

_run = statements_of("pipeline_owner")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A deployment of Airflow: the name by which it is known, and the address at which people open it."""

    name: str
    address: str


@dataclass(frozen=True, kw_only=True)
class PipelineOwner:
    """The deployment that judges a pipeline. Once it is released, the next one that opens a window does."""

    pipeline: str
    deployment: str
    address: str
    claimed_at: datetime
    released_at: datetime | None
    released_by: str | None

    def excludes(self, other: Deployment) -> bool:
        """Return whether another deployment may not judge the pipeline."""
        return self.released_at is None and self.deployment != other.name


def wait_for_names(journal: PgConnection) -> None:
    """Hold, until the transaction ends, what the tasks of deployments that name themselves wait for."""
    _run(journal, "wait_for_names")


def owners(journal: PgConnection) -> Mapping[str, PipelineOwner]:
    """Return who judges each pipeline that had a window, by its name."""
    return {row.pipeline: record(PipelineOwner, row) for row in _run(journal, "owners", pipeline=None)}


def require_own(journal: PgConnection, pipeline: str, deployment: Deployment) -> None:
    """Return where no other deployment judges a pipeline.

    Raises:
        JudgedElsewhereError: one does; with what to do.
    """
    for owner in records(PipelineOwner, _run(journal, "owners", pipeline=pipeline)):
        if owner.excludes(deployment):
            raise JudgedElsewhereError([_judged_elsewhere(owner, deployment)])


def claim(journal: PgConnection, pipeline: str, deployment: Deployment) -> None:
    """Note that a deployment judges a pipeline.

    Raises:
        JudgedElsewhereError: another one does; with what to do.
    """
    _run(journal, "claim_pipeline", pipeline=pipeline, deployment=deployment.name, address=deployment.address)
    require_own(journal, pipeline, deployment)


def release(journal: PgConnection, pipeline: str, by: str) -> bool:
    """Release a pipeline for the next deployment that opens a window of it; return whether one had it."""
    return bool(_run(journal, "release_pipeline", pipeline=pipeline, by=by))


def _judged_elsewhere(owner: PipelineOwner, mine: Deployment) -> Problem:
    since = f"{owner.claimed_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return Problem(
        file="journal",
        path=f"pipeline {owner.pipeline}",
        found=f"is judged by another Airflow since {since}: {owner.address} (deployment {owner.deployment}); this one "
        f"is {mine.address} (deployment {mine.name})",
        remedy="Give this Airflow a journal of its own, or take the pipeline's file from its folders. Where the "
        f"pipeline has moved here for good: makewhole pipelines --release {owner.pipeline}",
    )
