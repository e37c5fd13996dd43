"""Run planned expectations in Great Expectations. No other module calls the library.

An ephemeral context is built for each run and nothing is persisted. No expectation on Spark SQL is used: those share a
view of one fixed name and answer from each other's data. The library loads inside the functions: importing it takes
seconds and hundreds of megabytes, which no DAG file may cost.
"""

import gc
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from makewhole.gate.lazy_import import loaded_at_first_use
from makewhole.gate.planned_expectation import Planned
from makewhole.gate.transposed import ID_COLUMN, NumberSuite, TransposedGroup, transpose

_ONE_AT_A_TIME = threading.Lock()  # the library keeps its current context in a global
_LONGEST_MESSAGE = 300
_COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 0}  # samples cost a Spark job for each expectation


@dataclass(frozen=True, kw_only=True)
class ExpectationOutcome:
    """The outcome of one planned expectation. `raised` is the first line of an exception inside the library, if any."""

    id: str
    success: bool
    found: int | None = None
    raised: str | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteRun:
    """The run of one suite on one batch. `worst` is the severity of the worst failure, None without one."""

    name: str
    success: bool
    worst: str | None
    outcomes: tuple[ExpectationOutcome, ...]


def run_on_rows(suites: Sequence[NumberSuite]) -> tuple[SuiteRun, ...]:
    """Run layer B: the expectations on rows of numbers, transposed together, in pandas. Returns a run for each suite.

    Where the library's result does not cover every row of a transposed group, its expectations have no outcome.
    """
    gx = _library()
    with _ONE_AT_A_TIME:
        source = _context(gx).data_sources.add_pandas("summary")
        groups = [
            _run_on_group(gx, f"numbers {number}", source.add_dataframe_asset(f"part {number}"), group)
            for number, group in enumerate(transpose(suites))
        ]
    return tuple(_run_of(suite, groups) for suite in suites)


def _run_of(suite: NumberSuite, groups: Sequence[SuiteRun]) -> SuiteRun:
    """Take what is a suite's own out of the runs of groups. The worst of its failures is as bad as the library says
    that the groups with them are; a group that failed and names no failure makes no suite a success."""
    ids = {one.id for one in suite.planned}
    own = [(group.worst, [outcome for outcome in group.outcomes if outcome.id in ids]) for group in groups]
    outcomes = tuple(outcome for _, part in own for outcome in part)
    worst = [worst for worst, part in own if worst is not None and not all(outcome.success for outcome in part)]
    is_explained = all(group.success or not all(one.success for one in group.outcomes) for group in groups)
    return SuiteRun(
        name=suite.name,
        success=is_explained and all(outcome.success for outcome in outcomes),
        worst="critical" if "critical" in worst else next(iter(worst), None),
        outcomes=outcomes,
    )


def _run_on_group(gx: Any, name: str, asset: Any, group: TransposedGroup) -> SuiteRun:
    import pandas as pd

    by_id = {"result_format": "COMPLETE", "unexpected_index_column_names": [ID_COLUMN]}
    run, results = _run(gx, name, asset, pd.DataFrame(group.columns), group.expectations, by_id)
    raised = next((outcome.raised for outcome in run.outcomes if outcome.raised), None)
    if raised is not None:
        return replace(
            run, outcomes=tuple(ExpectationOutcome(id=one, success=False, raised=raised) for one in group.ids)
        )
    failed = group.failed_ids(results)
    if failed is None:
        return replace(run, success=False, outcomes=())
    return replace(
        run,
        outcomes=tuple(
            ExpectationOutcome(id=one, success=one not in failed, found=int(one in failed)) for one in group.ids
        ),
    )


def run_on_spark(name: str, frame: Any, planned: Sequence[Planned]) -> SuiteRun:
    """Run layer A: the expectations on a Spark DataFrame that reads Parquet. The running SparkContext is left alone."""
    gx = _library()
    with _ONE_AT_A_TIME:
        source = _context(gx).data_sources.add_spark("verdicts", persist=False)
        return _run(gx, name, source.add_dataframe_asset("verdicts"), frame, planned, _COUNTS)[0]


def run_on_pandas(name: str, frame: Any, planned: Sequence[Planned]) -> SuiteRun:
    """Run layer A: the expectations on a pandas DataFrame."""
    gx = _library()
    with _ONE_AT_A_TIME:
        source = _context(gx).data_sources.add_pandas("verdicts")
        return _run(gx, name, source.add_dataframe_asset("verdicts"), frame, planned, _COUNTS)[0]


def load_beside() -> None:
    """Begin to load the library in a thread: it takes seconds, in which Spark can start and work.

    What the caller imports itself it imports before: two threads that import in circles can meet a module half made.
    What fails here is met again by the run that needs it. Python waits for the thread before it ends: one that is cut
    off inside an extension would change the exit code.
    """
    threading.Thread(target=_load, name="load great_expectations").start()


def _load() -> None:
    """Load the library without looking for garbage meanwhile: what it makes stays, and looking takes a fifth of the
    time."""
    gc.disable()
    try:
        with suppress(Exception):
            _library()
    finally:
        gc.freeze()
        gc.enable()


def library_version() -> str:
    """Return the version of the library, for the report."""
    return str(_library().__version__)


def _library() -> Any:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the library is imported; it would phone home
    with loaded_at_first_use("scipy.stats"):  # a third of the library's import, for an expectation that is not ours
        import great_expectations

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    return great_expectations


def _context(gx: Any) -> Any:
    """Build a context in memory, without the Data Docs site that an ephemeral context otherwise has."""
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

    config = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults(), analytics_enabled=False)
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return context


def _run(
    gx: Any, name: str, asset: Any, frame: Any, planned: Sequence[Planned], result_format: Any
) -> tuple[SuiteRun, Sequence[Any]]:
    """Run a suite on a frame. Returns our run and the library's own results."""
    batch = asset.add_batch_definition_whole_dataframe("whole").get_batch(batch_parameters={"dataframe": frame})
    result = batch.validate(_suite(gx, name, planned), result_format=result_format)
    worst = result.get_max_severity_failure()
    run = SuiteRun(
        name=name,
        success=bool(result.success),
        worst=None if worst is None else str(worst.value),
        outcomes=tuple(_outcome(one) for one in result.results),
    )
    return run, result.results


def _suite(gx: Any, name: str, planned: Sequence[Planned]) -> Any:
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    expectations = [
        ExpectationConfiguration(
            type=one.type, kwargs=dict(one.kwargs), severity=FailureSeverity(one.severity), meta={"id": one.id}
        ).to_domain_obj()
        for one in planned
    ]
    return gx.ExpectationSuite(name=name, expectations=expectations)  # adding one by one compares each with all


def _outcome(one: Any) -> ExpectationOutcome:
    observed = one.result.get("observed_value", one.result.get("unexpected_count"))
    return ExpectationOutcome(
        id=str(one.expectation_config.meta["id"]),
        success=bool(one.success),
        found=None if observed is None else int(observed),
        raised=_raised(one.exception_info),
    )


def _raised(info: Mapping[str, Any] | None) -> str | None:
    """Return the first exception of a check. The library reports it in two shapes: flat, or one entry per metric."""
    for entry in (info or {}, *(info or {}).values()):
        if isinstance(entry, Mapping) and entry.get("raised_exception"):
            return first_line(str(entry.get("exception_message") or "no message was given"))
    return None


def first_line(message: str) -> str:
    """Return the first line of a message, cut for a report; the lines after it may quote data."""
    return message.strip().split("\n", 1)[0][:_LONGEST_MESSAGE]
