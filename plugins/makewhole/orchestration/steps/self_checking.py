"""Plant the faults of a self-check, open the window that covers them, and compare what it found with them.

DAG files import this module, so what the steps need is imported when they run.
"""

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from makewhole.orchestration.steps.asset_events import asset_of
from makewhole.orchestration.steps.opening import log_opened
from makewhole.orchestration.steps.recorded_failure import recorded
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_own_pipeline, load_pipeline, load_ready_pipeline
from makewhole.orchestration.task_ids import END_OF_WINDOW, PLANT_FAULTS, request_id, self_check_asset

if TYPE_CHECKING:
    from makewhole.journal.results.self_check_rounds import PlantedRound

logger = logging.getLogger(__name__)


@step
@recorded
def plant_faults(pipeline_name: str) -> dict[str, Any]:
    """Plant the faults of this run's round, or go on with what an earlier run has left; return which round it is, how
    many faults it has, and the moment before which all of it lies."""
    from makewhole.self_check.plant import plant
    from makewhole.window.context import connections_of

    pipeline = load_own_pipeline(pipeline_name)
    run = get_current_context()["dag_run"]
    planted = plant(pipeline, connections_of(pipeline), request_id(run.dag_id, run.run_id))
    assert planted.planted_at is not None
    return {"round": planted.round, "faults": len(planted.planted), "until": planted.planted_at.isoformat()}


@step
@recorded
def open_window(pipeline_name: str) -> dict[str, Any]:
    """Open the window that ends where the planting of this run's round ended, whatever the schedule says: so it has all
    of the round, also after days without a run."""
    from makewhole.journal.database import connect
    from makewhole.orchestration.older_windows import finish_older_windows
    from makewhole.window.context import connections_of
    from makewhole.window.opening.interval import Request
    from makewhole.window.opening.open import open_interval

    context = get_current_context()
    run, planted = context["dag_run"], context["ti"].xcom_pull(task_ids=PLANT_FAULTS)
    request = Request(
        id=request_id(run.dag_id, run.run_id),
        end=datetime.fromisoformat(planted["until"]),
        reason=f"round {planted['round']} of the self-check",
        asked_by=run.triggering_user_name,
    )
    pipeline = load_ready_pipeline(pipeline_name)
    finish_older_windows(context, pipeline, request)
    with connect() as journal:
        opened = open_interval(journal, pipeline, connections_of(pipeline), request)
    return log_opened(opened, "" if opened.is_new else "; it was judged before, this is a new revision")


@step
def compare_faults(pipeline_name: str) -> dict[str, Any]:
    """Compare what windows found with what was planted, of every round that waits for it; fail where that of this run
    was not found, repaired and proven whole, and where there is none.

    Raises:
        AirflowFailException: the self-check is red; the message says what was missed or invented.
    """
    from makewhole.journal.database import connect
    from makewhole.journal.results import self_check_rounds
    from makewhole.orchestration.telemetry import metrics
    from makewhole.self_check.compare import LOOKED_AT, compare
    from makewhole.window.context import connections_of

    pipeline = load_pipeline(pipeline_name)
    for planted in compare(pipeline, connections_of(pipeline)):
        _log(planted)
        assert planted.result is not None
        metrics.send(metrics.of_self_check(pipeline.name, planted.result.score))
    context = get_current_context()
    of_run = context["ti"].xcom_pull(task_ids=PLANT_FAULTS)
    if not isinstance(of_run, dict):
        raise AirflowFailException(f"nothing was planted in this run; see the task {PLANT_FAULTS}")
    with connect() as journal:
        known = self_check_rounds.newest(journal, pipeline.name, LOOKED_AT)
    mine = next(planted for planted in known if planted.round == of_run["round"])
    if mine.result is None:
        raise AirflowFailException(
            f"round {mine.round} could not be compared: no window of it came to its end; the next run goes on with it"
        )
    score = mine.result.score
    if not score.is_green:
        raise AirflowFailException(f"round {mine.round}: {score.sentence()}")
    context["ti"].xcom_push(key=END_OF_WINDOW, value=f"self-check round {mine.round}: {score.sentence()}")
    extra = {
        "pipeline": pipeline.name,
        "round": mine.round,
        "window": mine.result.window,
        "planted": score.planted,
        "found": score.found,
        "recall": score.recall,
        "precision": score.precision,
    }
    context["outlet_events"][asset_of(self_check_asset(pipeline.name))].extra = extra
    return extra


def _log(planted: "PlantedRound") -> None:
    """Log what became of a round, and each key that was missed, invented, or is still wrong."""
    assert planted.result is not None
    score = planted.result.score
    logger.log(logging.INFO if score.is_green else logging.ERROR, "round %d: %s", planted.round, score.sentence())
    for what, faults in (("missed", score.missed), ("invented", score.invented), ("still wrong", score.left)):
        for fault in faults:
            logger.error("%s: %s on %s: %s", what, fault.verdict, fault.hop, fault.key)
