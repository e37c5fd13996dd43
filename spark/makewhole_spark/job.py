"""Run the steps of a job: session, journal, and an exit code that says whether to try again.

The application of one step goes on with the next ones of the same window (`--through`): starting another one takes
longer than a small window. Its exit code is that of its own step, whatever becomes of the later ones.
"""

import argparse
import gc
import logging
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module

from makewhole.gate import load_meanwhile
from makewhole.journal import step_failures, windows
from makewhole.journal.database import connect
from makewhole.journal.step_failures import StepPlace
from makewhole.kinds import modules_of
from makewhole.model.errors import DEFECTS, MakewholeError, PermanentError, RefusedError
from makewhole.window.context import WindowContext, window_context
from makewhole_spark.spark_carrier import SparkCarrier, stop
from makewhole_spark.spark_start import StartingSpark
from makewhole_spark.step_names import VALIDATE, steps_through
from makewhole_spark.time_limit import ending_process_after
from makewhole_spark.watch import StepWatch
from makewhole_spark.window_steps import Job, run_step

logger = logging.getLogger("makewhole")

EXIT_TRANSIENT, EXIT_PERMANENT = 1, 64


def run_job(wanted: argparse.Namespace, starting: StartingSpark) -> None:
    """Run the steps that the arguments name, and exit: 0, or 1 (try again), or 64 (do not try again)."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stdout)
    for noisy in ("py4j", "great_expectations"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        _run(wanted, starting)
    except MakewholeError as error:
        record_failure(wanted, error)
        logger.error("%s", error)
        sys.exit(EXIT_PERMANENT if isinstance(error, PermanentError) else EXIT_TRANSIENT)
    except DEFECTS as error:
        record_failure(wanted, error)
        traceback.print_exc()
        logger.error(
            "a defect (%s), which trying again does not mend; report it with the lines above", type(error).__name__
        )
        sys.exit(EXIT_PERMANENT)
    except Exception as error:
        record_failure(wanted, error)
        raise


def record_failure(wanted: argparse.Namespace, error: Exception) -> None:
    """Keep in the journal why the step that was submitted broke; where that is away, its task has the log alone."""
    try:
        with connect() as journal:
            step_failures.put(journal, _place(wanted, wanted.step), error)
    except MakewholeError as away:
        logger.warning("the reason is in this log alone: %s", away)


def _place(wanted: argparse.Namespace, step: str) -> StepPlace:
    return StepPlace(
        pipeline=wanted.pipeline,
        step=step,
        dag=wanted.dag,
        run=wanted.asked_by,
        number=wanted.window,
        revision=wanted.revision,
    )


def _run(wanted: argparse.Namespace, starting: StartingSpark) -> None:
    steps = steps_through(wanted.step, wanted.through)
    own, *later = steps
    with connect() as journal:
        context = window_context(windows.load(journal, wanted.pipeline, wanted.window, wanted.revision))
    # While Java starts, this process only waits.
    modules = modules_of(context.connections.values())
    starting.worker_modules.set_result(modules)
    for module in modules:
        with suppress(ImportError):  # who needs it says what to install
            import_module(module)
    gc.freeze()
    gc.enable()
    if VALIDATE in steps:
        load_meanwhile()
    spark = starting.context.result()
    carrier = SparkCarrier(spark)
    _log_step(carrier, context, own, wanted, is_own=True)
    for before, step in zip(steps, later, strict=False):
        logger.info("%s: %s is committed; this application goes on with %s", context.window.label, before, step)
        if not _is_done(carrier, context, step, wanted):
            break
    stop(spark)
    gc.freeze()  # Python would look for garbage in all that was loaded, for a second or two, before it ends


def _is_done(carrier: SparkCarrier, context: WindowContext, step: str, wanted: argparse.Namespace) -> bool:
    """Run a later step; tell whether it ended well. Whatever goes wrong is for its own task to meet and to show."""
    try:
        _log_step(carrier, context, step, wanted, is_own=False)
    except Exception as error:
        reason = str(error) if isinstance(error, MakewholeError) else type(error).__name__
        logger.warning("%s", _left_to_its_task(context, step, reason))
        return False
    return True


def _left_to_its_task(context: WindowContext, step: str, reason: str) -> str:
    return (
        f"{context.window.label}: {step} did not end well here ({reason}). This does not fail this task: the task "
        f"`{step}` does it again by itself, and is red if it cannot"
    )


def _log_step(
    carrier: SparkCarrier, context: WindowContext, step: str, wanted: argparse.Namespace, *, is_own: bool
) -> None:
    """Run a step, within its time limit and on a connection of its own to the journal, which commits at its end; log
    what it found."""
    limit = getattr(context.pipeline.time_limits, step)
    late = f"it took longer than {limit}, its time limit in the pipeline file (`time_limits`)"
    message, code = (
        (f"{context.window.label}: {step}: {late}", EXIT_PERMANENT)
        if is_own
        else (_left_to_its_task(context, step, late), 0)
    )
    at_the_end = partial(record_failure, wanted, RefusedError(late)) if is_own else None
    watched = replace(carrier, watch=StepWatch(place=_place(wanted, step), label=context.window.label))
    job = partial(Job, carrier=watched, context=context, asked_by=wanted.asked_by, is_own=is_own)
    with ending_process_after(limit, message, code, at_the_end), connect() as journal:
        text = run_step(step, job(journal=journal))
    logger.info("%s: %s", context.window.label, text)
