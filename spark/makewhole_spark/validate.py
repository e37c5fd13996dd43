"""The gate on Spark: reads the stored verdicts and has them checked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from makewhole.gate import HopSummary, check_summaries, check_verdicts, error_report
from makewhole.journal import evidence, incidents
from makewhole.model.gate import GateReport
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Pipeline
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def validate(
    session: "SparkSession",
    pipeline: Pipeline,
    summaries: Sequence[HopSummary],
    files: Sequence[str],
    happened: Sequence[Incident] = (),
) -> GateReport:
    """`files` are the Parquet files of the verdicts of all hops: columns hop, key_hash, verdict, cause.

    Files that are named and cannot be read give ERROR, as does anything else that breaks; nothing is raised.
    """
    if not files:
        return error_report("No file of verdicts was named, so there is nothing to check. Run the comparison again.")
    try:
        verdicts = session.read.parquet(*files)
    except Exception as error:
        return error_report(f"The verdicts could not be read ({type(error).__name__}). Run the comparison again.")
    return check_verdicts(pipeline, summaries, verdicts, happened)


def validate_window(session: "SparkSession", journal: PgConnection, context: WindowContext) -> GateReport:
    """Ask the gate about the committed results of a window and keep its answer in the journal."""
    results, happened = evidence.results(journal, context.window), incidents.of(journal, context.window)
    try:
        summaries = [HopSummary.from_json_dict(result.files["summary"]) for result in results.values()]
        files = [context.storage.uri(path) for result in results.values() for path in result.files["verdicts"]]
    except (KeyError, TypeError) as error:
        report = error_report(f"The results in the journal cannot be read ({type(error).__name__}). Compare again.")
    else:
        is_silent = bool(summaries) and not files and all(summary.expected_rows == 0 for summary in summaries)
        # No key anywhere, so no verdict: the numbers alone say whether the pipeline permits such a day.
        report = (
            check_summaries(context.pipeline, summaries, happened)
            if is_silent
            else validate(session, context.pipeline, summaries, files, happened)
        )
    evidence.put_gate_report(journal, context.window, evidence.RECONCILED, report)
    return report
