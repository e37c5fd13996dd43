"""Ask, as the first act of a window, whether everything that it needs is as it needs it."""

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowNotFoundException

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.deployment.connections import described, signing_key
from makewhole.orchestration.deployment.judged_here import require_own

if TYPE_CHECKING:
    from makewhole.window.readiness.mistakes import Readiness

logger = logging.getLogger(__name__)


def require_ready(pipeline: Pipeline) -> None:
    """Return where a window of the pipeline can be judged, whose connections are in this process's environment.

    Raises:
        ConfigurationError: something is wrong; with all of it, and the next step.
        TransientError: nothing is wrong, and something does not answer.
    """
    from makewhole.window.readiness.mistakes import Weight

    readiness = look_at_all(pipeline)
    for problem in (*readiness.of(Weight.REPAIRS), *readiness.of(Weight.ADVICE)):
        logger.warning("%s", problem)
    readiness.require()


def look_at_all(pipeline: Pipeline) -> "Readiness":
    """Ask everything that a window of the pipeline needs; return what was asked, and what is wrong with it."""
    from makewhole.compensation.approval.rights import problem_of_groups
    from makewhole.config.people.groups import read_groups
    from makewhole.window.readiness.mistakes import Readiness, Weight
    from makewhole.window.readiness.points import look_at_points
    from makewhole.window.readiness.service import (
        look_at_chain,
        look_at_journal,
        look_at_signing_key,
        look_at_storage,
    )
    from makewhole.window.readiness.spark import SPARK_CONNECTION, look_at_machine, look_at_spark

    readiness = Readiness()
    look_at_journal(readiness)
    if not readiness.failed:
        with readiness.asking(f"deployment of {pipeline.name}", "journal"):
            require_own(pipeline.name)
    look_at_storage(readiness)
    look_at_chain(readiness, readiness, pipeline.name)
    look_at_signing_key(readiness, signing_key)  # a window that could not be certified is not begun
    spark = _fields(SPARK_CONNECTION)
    look_at_spark(readiness, spark)
    look_at_machine(readiness, spark)
    look_at_points(readiness, pipeline)
    with readiness.asking("groups of approvers", "MAKEWHOLE_GROUPS"):
        no_person = problem_of_groups(pipeline.approval, read_groups(), "pipeline file")
        if no_person is not None:  # before a plan waits for an answer that no person can give
            readiness.note(no_person, Weight.REPAIRS)
    return readiness


def _fields(connection_id: str) -> dict[str, Any] | None:
    """Return the fields of a connection of Airflow; None: there is none."""
    try:
        return described(connection_id)
    except AirflowNotFoundException:
        return None
