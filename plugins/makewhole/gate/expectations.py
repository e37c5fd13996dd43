"""Run planned expectations in Great Expectations. No other module calls the library.

Contexts are ephemeral and nothing is persisted: Spark has one for each run, pandas one for each process, where every
table is a batch of its own. No expectation on Spark SQL is used: those share a view of one fixed name and answer from
each other's data. The library loads inside the functions: importing it takes seconds and hundreds of megabytes, which
no DAG file may cost.
"""

import gc
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from makewhole.config.extras import installed_for
from makewhole.gate.planned_expectation import Planned
from makewhole.gate.transposed import ID_COLUMN, NumberSuite, transpose
from makewhole.lazy_import import absent, loaded_at_first_use, substituted

_ONE_AT_A_TIME = threading.Lock()  # the library keeps its current context in a global
_LONGEST_MESSAGE = 300
_UNUSED = ("pyspark.ml", "pyspark.sql.connect")  # the library does without them; a tenth of its import
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
    """Run layer B: the expectations on rows of numbers, transposed into one table, in pandas. Returns a run for each
    suite.

    Where the library's result does not cover every row of the table, its expectations have no outcome.
    """
    import pandas as pd

    table = transpose(suites)
    by_id = {"result_format": "COMPLETE", "unexpected_index_column_names": [ID_COLUMN]}
    run, results = _run_in_pandas("numbers", pd.DataFrame(table.columns), table.expectations, by_id)
    raised = next((outcome.raised for outcome in run.outcomes if outcome.raised), None)
    failures = table.failures(results) if raised is None else None
    if failures is not None and run.success is bool(failures):
        failures = None  # a table that failed and names no row, or the other way round, makes no suite a success
    return tuple(_run_of(suite, failures, raised) for suite in suites)


def _run_of(suite: NumberSuite, failures: Mapping[str, str] | None, raised: str | None) -> SuiteRun:
    """Take what is a suite's own out of the failures, which are None where the library does not report all of them."""
    ids = [check.id for check in suite.planned]
    if raised is not None:
        outcomes = tuple(ExpectationOutcome(id=id_, success=False, raised=raised) for id_ in ids)
        return SuiteRun(name=suite.name, success=False, worst=None, outcomes=outcomes)
    if failures is None:
        return SuiteRun(name=suite.name, success=False, worst=None, outcomes=())
    own = [failures[id_] for id_ in ids if id_ in failures]
    return SuiteRun(
        name=suite.name,
        success=not own,
        worst="critical" if "critical" in own else next(iter(own), None),
        outcomes=tuple(
            ExpectationOutcome(id=id_, success=id_ not in failures, found=int(id_ in failures)) for id_ in ids
        ),
    )


def run_on_spark(name: str, frame: Any, planned: Sequence[Planned]) -> SuiteRun:
    """Run layer A: the expectations on a Spark DataFrame that reads Parquet. The running SparkContext is left alone."""
    with _ONE_AT_A_TIME:
        source = _context().data_sources.add_spark("verdicts", persist=False)
        return _run(_whole(source), name, frame, planned, _COUNTS)[0]


def run_on_pandas(name: str, frame: Any, planned: Sequence[Planned]) -> SuiteRun:
    """Run layer A: the expectations on a pandas DataFrame."""
    return _run_in_pandas(name, frame, planned, _COUNTS)[0]


def load_meanwhile() -> None:
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


@cache
def library_version() -> str:
    """Return the version of the library, for the report."""
    return version("great_expectations")


def _library() -> Any:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the library is imported; it would phone home
    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # its import alone logs some 200 lines
    # SciPy's is a third of the library's import and altair a tenth, for an expectation that is not ours.
    with loaded_at_first_use("scipy.stats"), substituted("altair"), absent(*_UNUSED), installed_for("the gate"):
        import great_expectations
    return great_expectations


def _context() -> Any:
    """Build a context in memory, without the Data Docs site that an ephemeral context otherwise has."""
    gx = _library()
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

    config = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults(), analytics_enabled=False)
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return context


def _run_in_pandas(
    name: str, frame: Any, planned: Sequence[Planned], result_format: Mapping[str, Any]
) -> tuple[SuiteRun, Sequence[Any]]:
    with _ONE_AT_A_TIME:
        return _run(_pandas_batches(), name, frame, planned, result_format)


@cache
def _pandas_batches() -> Any:
    """Return what makes a batch of a pandas DataFrame. It is kept: the library takes as long to define it as for two
    expectations."""
    return _whole(_context().data_sources.add_pandas("frames"))


def _whole(source: Any) -> Any:
    return source.add_dataframe_asset("frame").add_batch_definition_whole_dataframe("whole")


def _run(
    batches: Any, name: str, frame: Any, planned: Sequence[Planned], result_format: Mapping[str, Any]
) -> tuple[SuiteRun, Sequence[Any]]:
    """Run a suite on a frame. Returns our run and the library's own results."""
    batch = batches.get_batch(batch_parameters={"dataframe": frame})
    result = batch.validate(_suite(name, planned), result_format=dict(result_format))
    worst = result.get_max_severity_failure()
    run = SuiteRun(
        name=name,
        success=bool(result.success),
        worst=None if worst is None else str(worst.value),
        outcomes=tuple(map(_outcome, result.results)),
    )
    return run, result.results


def _suite(name: str, planned: Sequence[Planned]) -> Any:
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    expectations = [
        ExpectationConfiguration(
            type=check.type, kwargs=dict(check.kwargs), severity=FailureSeverity(check.severity), meta={"id": check.id}
        ).to_domain_obj()
        for check in planned
    ]
    return _library().ExpectationSuite(name=name, expectations=expectations)  # adding one by one compares each with all


def _outcome(result: Any) -> ExpectationOutcome:
    observed = result.result.get("observed_value", result.result.get("unexpected_count"))
    return ExpectationOutcome(
        id=str(result.expectation_config.meta["id"]),
        success=bool(result.success),
        found=None if observed is None else int(observed),
        raised=_raised(result.exception_info),
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
