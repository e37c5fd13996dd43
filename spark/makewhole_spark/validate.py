"""Validate a window: read its stored verdicts, here or on Spark, and have the gate check them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from makewhole.compute.frames import BUCKETS, VERDICTS, Schema
from makewhole.gate import (
    HopSummary,
    KeyedFrames,
    KeyedRows,
    NamedFiles,
    check_summaries,
    check_verdicts,
    error_report,
)
from makewhole.gate.frame import Frame
from makewhole.journal import acceptances, incidents
from makewhole.journal.results import gate_answers, hop_results
from makewhole.lake.storage import Storage
from makewhole.model.gate import GateReport
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Pipeline
from makewhole.sql import PgConnection
from makewhole.window.configuration import judging_sha256
from makewhole.window.context import WindowContext
from makewhole.window.spark_steps.committed import ASKED_BY
from makewhole_spark.carrier import Carrier

FEW_ROWS = 200_000
"""Verdicts up to this number are checked in this process, which Spark's jobs would take seconds for."""


@dataclass(frozen=True, kw_only=True)
class StoredVerdicts:
    """Paths of the files of all hops: of the verdicts (`VERDICTS`), and of the buckets (`BUCKETS`)."""

    storage: Storage
    verdicts: Sequence[str]
    buckets: Sequence[str]

    def read(self, carrier: Carrier) -> KeyedRows | KeyedFrames:
        """Read the files: into memory where they have few rows, or as frames of the carrier."""
        if self.storage.count_rows(self.verdicts) <= FEW_ROWS:
            verdicts, buckets = self.storage.read_parquet(self.verdicts), self.storage.read_parquet(self.buckets)
            assert verdicts is not None
            assert buckets is not None
            return KeyedRows(verdicts=verdicts, buckets=buckets)
        return KeyedFrames(
            verdicts=self._stored(carrier, self.verdicts, VERDICTS),
            buckets=self._stored(carrier, self.buckets, BUCKETS),
        )

    def _stored(self, carrier: Carrier, paths: Sequence[str], schema: Schema) -> Frame | NamedFiles:
        return carrier.frame([self.storage.uri(path) for path in paths], schema)


def validate(
    carrier: Carrier,
    pipeline: Pipeline,
    summaries: Sequence[HopSummary],
    stored: StoredVerdicts,
    happened: Sequence[Incident] = (),
) -> GateReport:
    """Have the gate check the verdicts of all hops.

    Files that cannot be read give ERROR, as does anything else that breaks; nothing is raised.
    """
    for of_what, files in (("verdicts", stored.verdicts), ("buckets", stored.buckets)):
        if not files:
            return error_report(
                f"No file of {of_what} was named, so there is nothing to check. Run the comparison again."
            )
    try:
        rows = stored.read(carrier)
    except Exception as error:
        return error_report(f"The verdicts could not be read ({type(error).__name__}). Run the comparison again.")
    return check_verdicts(pipeline, summaries, rows, happened)


def ask_gate(carrier: Carrier, journal: PgConnection, context: WindowContext) -> GateReport:
    """Ask the gate about the committed results of a window. The transaction at the journal is ended before."""
    results, happened = hop_results.results(journal, context.window), incidents.of(journal, context.window)
    accepted = acceptances.count_accepted(journal, context.window, with_doubled=False)
    journal.commit()  # nothing is held open there while the gate works
    alone = {point.name for point in context.pipeline.topics_alone}  # of which no key has a verdict
    try:
        judged = [HopSummary.from_json_dict(result.files["summary"]) for result in results.values()]
        summaries = [replace(summary, accepted=accepted.get(summary.hop, {})) for summary in judged]
        stored = StoredVerdicts(
            storage=context.storage,
            verdicts=[path for result in results.values() for path in result.files["verdicts"]],
            buckets=[result.files["buckets"] for name, result in results.items() if name not in alone],
        )
    except (KeyError, TypeError) as error:
        return error_report(f"The results in the journal cannot be read ({type(error).__name__}). Compare again.")
    is_empty = bool(summaries) and not stored.verdicts and all(summary.expected_rows == 0 for summary in summaries)
    # Without any key there is no verdict: the numbers alone decide whether the pipeline permits that.
    report = (
        check_summaries(context.pipeline, summaries, happened)
        if is_empty
        else validate(carrier, context.pipeline, summaries, stored, happened)
    )
    return report.asked_with(accepted)


def keep_answer(journal: PgConnection, context: WindowContext, report: GateReport, asked_by: str = "") -> None:
    """Write the gate's answer to the journal, with the file by which it was asked and the run that asked, if any."""
    asked = {"judging_sha256": judging_sha256(context.pipeline), **({ASKED_BY: asked_by} if asked_by else {})}
    kept = replace(report, document={**report.document, **asked})
    gate_answers.put_gate_report(journal, context.window, hop_results.RECONCILED, kept)
