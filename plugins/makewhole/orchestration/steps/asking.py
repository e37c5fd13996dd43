"""Ask the systems of a pipeline from where its windows are judged. Nothing is written."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from airflow.sdk import get_current_context

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.access import requested_name
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.task_ids import READINESS

logger = logging.getLogger(__name__)


@step
def ask() -> dict[str, Any]:
    """Ask what the form names; return the answer: no key and no value is in it."""
    from makewhole.config.pipeline_file import find_pipeline
    from makewhole.orchestration.deployment.connections import export_connections

    context = get_current_context()
    pipeline = find_pipeline(requested_name(context))
    export_connections(pipeline)
    return _readiness(pipeline) if context["params"]["question"] == READINESS else _delivery(pipeline)


def _readiness(pipeline: Pipeline) -> dict[str, Any]:
    """Return `Readiness` as JSON."""
    from makewhole.orchestration.readiness import look_at_all

    readiness = look_at_all(pipeline)
    for mistake in readiness.mistakes:
        logger.warning("%s: %s", mistake.weight.value, mistake.problem)
    logger.info("%d things asked, %d not as a window needs them", len(readiness.asked), len(readiness.failed))
    return readiness.to_json_dict()


def _delivery(pipeline: Pipeline) -> dict[str, Any]:
    from makewhole.window.delivery.diagnosis import diagnose

    diagnosis = diagnose(pipeline)
    for line in _lines(diagnosis):
        logger.info("%s", line)
    return diagnosis


def _lines(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    """Yield a diagnosis for the log."""
    for weak in diagnosis["findings"]:
        setting = f"{weak['setting']}: {weak['value']}; should be {weak['expected']}"
        yield f"{weak['severity']}: {weak['thing']}: {setting}, because {weak['because']}. To write: {weak['remedy']}"
    for prepared in diagnosis["prepared"]:
        yield f"{prepared['point']}: transaction {prepared['gid']} is prepared. To settle: {prepared['settled_by']}"
    for waiting in diagnosis["open"]:
        place = f"{waiting['topic']}/{waiting['partition']} from offset {waiting['first_offset']}"
        yield f"{waiting['point']}: a transaction is open in {place}. To settle: {waiting['settled_by']}"
    for problem in diagnosis["problems"]:
        yield f"not asked: {problem['point']}: {problem['problem']}"
    yield f"{len(diagnosis['findings'])} settings to look at"
