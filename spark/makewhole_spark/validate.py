"""Validate a window on Spark: read its stored verdicts and have the gate check them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from makewhole.compute.frames import BUCKETS, VERDICTS, Schema
from makewhole.file_system import is_object_store
from makewhole.gate import HopSummary, KeyedFrames, NamedFiles, check_summaries, check_verdicts, error_report
from makewhole.gate.frame import Frame
from makewhole.journal import incidents, window_results
from makewhole.model.gate import GateReport
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Pipeline
from makewhole.sql import PgConnection
from makewhole.window.configuration import judging_sha256
from makewhole.window.context import WindowContext
from makewhole.window.spark_steps.committed import ASKED_BY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def validate(
    session: "SparkSession",
    pipeline: Pipeline,
    summaries: Sequence[HopSummary],
    files: Sequence[str],
    happened: Sequence[Incident] = (),
    buckets: Sequence[str] = (),
) -> GateReport:
    """Have the gate check the verdicts of all hops, Parquet `files` with the columns of `VERDICTS`; `buckets` are files
    with those of `BUCKETS`, none of an older makewhole.

    Files that cannot be read give ERROR, as does anything else that breaks; nothing is raised.
    """
    if not files:
        return error_report("No file of verdicts was named, so there is nothing to check. Run the comparison again.")
    try:
        frames = KeyedFrames(
            verdicts=_stored(session, files, VERDICTS),
            buckets=_stored(session, buckets, BUCKETS) if buckets else None,
        )
    except Exception as error:
        return error_report(f"The verdicts could not be read ({type(error).__name__}). Run the comparison again.")
    return check_verdicts(pipeline, summaries, frames, happened)


def _stored(session: "SparkSession", files: Sequence[str], schema: Schema) -> Frame | NamedFiles:
    """Return a frame by which the gate finds stored files, or their names where Spark's reader has no way to them."""
    if any(map(is_object_store, files)):
        from makewhole_spark.stored_frames import stored_frame

        return NamedFiles(paths=files, read=lambda paths: stored_frame(session, paths, schema))
    return session.read.parquet(*files)


def validate_window(session: "SparkSession", journal: PgConnection, context: WindowContext) -> GateReport:
    """Ask the gate about the committed results of a window and keep its answer in the journal."""
    report = ask_gate(session, journal, context)
    keep_answer(journal, context, report)
    return report


def ask_gate(session: "SparkSession", journal: PgConnection, context: WindowContext) -> GateReport:
    """Ask the gate about the committed results of a window. The transaction at the journal is ended before."""
    results, happened = window_results.results(journal, context.window), incidents.of(journal, context.window)
    journal.commit()  # nothing is held open there while the gate works
    try:
        summaries = [HopSummary.from_json_dict(result.files["summary"]) for result in results.values()]
        files = [context.storage.uri(path) for result in results.values() for path in result.files["verdicts"]]
        buckets = [
            context.storage.uri(result.files["buckets"]) for result in results.values() if "buckets" in result.files
        ]
    except (KeyError, TypeError) as error:
        return error_report(f"The results in the journal cannot be read ({type(error).__name__}). Compare again.")
    is_empty = bool(summaries) and not files and all(summary.expected_rows == 0 for summary in summaries)
    # Without any key there is no verdict: the numbers alone decide whether the pipeline permits that.
    return (
        check_summaries(context.pipeline, summaries, happened)
        if is_empty
        else validate(session, context.pipeline, summaries, files, happened, buckets)
    )


def keep_answer(journal: PgConnection, context: WindowContext, report: GateReport, asked_by: str = "") -> None:
    """Write the gate's answer to the journal, with the file by which it was asked and the run that asked, if any."""
    asked = {"judging_sha256": judging_sha256(context.pipeline), **({ASKED_BY: asked_by} if asked_by else {})}
    kept = replace(report, document={**report.document, **asked})
    window_results.put_gate_report(journal, context.window, window_results.RECONCILED, kept)
