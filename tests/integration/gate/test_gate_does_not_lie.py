"""Test the gate for each way in which Great Expectations calls bad data good (docs/adr/0017-the-gate.md)."""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, rand

from makewhole.gate import HopSummary, KeyedFrames, check, check_summaries, check_verdicts, expectations, transposed
from makewhole.gate.expectations import run_on_rows, run_on_spark
from makewhole.gate.planned_expectation import Number, Planned, Role
from makewhole.gate.suite import HopSuite
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.pipeline import Pipeline
from makewhole_spark.spark_carrier import SparkCarrier
from makewhole_spark.validate import validate
from tests.integration.gate.conftest import Store, one_bucket, stored

pytestmark = pytest.mark.integration

Row = tuple[str | None, str | None, str | None, str | None]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A row of numbers, and expectations that need not be those of its numbers."""

    name: str
    row: Mapping[str, int | None]
    planned: Sequence[Planned]


class Check:
    """Stores rows and has them checked."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store: Store) -> None:
        self.spark, self.pipeline, self.summaries, self.store = spark, pipeline, summaries, store

    def __call__(self, rows: Sequence[Row]) -> GateReport:
        return validate(SparkCarrier(self.spark.sparkContext), self.pipeline, self.summaries, stored(*self.store(rows)))


@pytest.fixture
def checked(
    place: str,
    spark: SparkSession,
    pipeline: Pipeline,
    summaries: list[HopSummary],
    store: Store,
) -> Check:
    return Check(spark, pipeline, summaries, store)


def test_a_whole_window_passes_with_every_expectation_evaluated(checked: Check, rows: list[Row]) -> None:
    report = checked(rows)
    assert (report.answer, report.failures) == (GateAnswer.PASS, ())
    assert report.planned == report.evaluated > 100
    assert report.document["notes"] == []


def test_a_loss_fails_with_hop_found_and_allowed(checked: Check, rows: list[Row]) -> None:
    lost = [(hop, key, "missing", "lost_after_topic") for hop, key, _, _ in rows[100:137]]
    of_store = checked.summaries[1]
    checked.summaries[1] = replace(of_store, counts=replace(of_store.counts, matched=63, missing=37, target_rows=63))
    report = checked([*rows[:100], *lost, *rows[137:]])
    assert report.answer is GateAnswer.FAIL
    assert report.failures == ("flights→warehouse: 37 keys missing, 0 allowed",)


def test_an_empty_suite_is_success_to_the_library_and_an_error_to_the_gate(
    checked: Check, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    [empty] = run_on_rows([HopSuite(hop="empty", numbers=())])
    assert empty.success
    monkeypatch.setattr(check, "frame_suite", lambda _summaries: ())
    monkeypatch.setattr(check, "hop_suite", lambda _pipeline, summary, _frame: HopSuite(hop=summary.hop, numbers=()))
    report = checked(rows)
    assert (report.answer, report.planned, report.evaluated) == (GateAnswer.ERROR, 0, 0)


def test_an_empty_frame_does_not_pass(checked: Check) -> None:
    report = checked([])
    assert report.answer is GateAnswer.ERROR
    assert "verdicts: 0 rows were judged, the snapshots hold 200 keys" in report.failures


def test_an_empty_frame_does_not_pass_even_where_the_counts_agree_with_it(checked: Check) -> None:
    checked.summaries = [replace(summary, counts=type(summary.counts)()) for summary in checked.summaries]
    assert checked([]).answer is GateAnswer.ERROR


def test_keys_and_verdicts_that_are_all_null_do_not_pass(checked: Check, rows: list[Row]) -> None:
    report = checked([(hop, None, None, None) for hop, _, _, _ in rows])
    assert report.answer is GateAnswer.ERROR
    assert "verdicts: 200 rows have no key_hash" in report.failures
    assert "verdicts: 200 rows have no verdict" in report.failures
    assert (
        "verdicts: 0 distinct keys were judged, the snapshots hold 200: some key repeats or is lost" in report.failures
    )


@pytest.mark.parametrize("column", ["hop", "key_hash", "verdict"])
def test_one_null_does_not_pass(checked: Check, rows: list[Row], column: str) -> None:
    place = ("hop", "key_hash", "verdict").index(column)
    rows[150] = tuple(None if number == place else value for number, value in enumerate(rows[150]))  # type: ignore[assignment]
    report = checked(rows)
    assert report.answer is GateAnswer.ERROR
    assert f"verdicts: 1 rows have no {column}" in report.failures


def test_a_verdict_that_does_not_exist_does_not_pass(checked: Check, rows: list[Row]) -> None:
    rows[0] = (rows[0][0], rows[0][1], "fine", None)
    assert "verdicts: 1 rows have a verdict that does not exist" in checked(rows).failures


def test_a_repeated_key_does_not_make_up_for_a_lost_one(checked: Check, rows: list[Row]) -> None:
    report = checked([rows[1], *rows[1:]])
    assert report.answer is GateAnswer.ERROR
    assert report.failures == (
        "verdicts: 199 distinct keys were judged, the snapshots hold 200: some key repeats or is lost",
    )


def test_a_surplus_on_one_hop_does_not_make_up_for_a_lack_on_another(checked: Check, rows: list[Row]) -> None:
    report = checked([*rows[:99], *rows[100:], ("flights→warehouse", "0" * 32, "matched", None)])
    assert report.answer is GateAnswer.ERROR
    assert "outbox→flights: 99 keys were judged, the snapshots hold 100" in report.failures
    assert "flights→warehouse: 101 keys were judged, the snapshots hold 100" in report.failures


def test_counts_that_hide_a_loss_in_the_stored_verdicts_do_not_pass(checked: Check, rows: list[Row]) -> None:
    rows[150] = (rows[150][0], rows[150][1], "missing", "lost_after_topic")
    report = checked(rows)
    assert report.answer is GateAnswer.ERROR
    assert "flights→warehouse: 1 key missing among the verdicts, 0 in the counts" in report.failures


@pytest.mark.parametrize(
    ("type_", "kwargs"),
    [
        ("expect_column_values_to_be_in_set", {"column": "verdict", "value_set": ["matched"], "mostly": 0}),
        ("expect_table_row_count_to_be_between", {"min_value": None, "max_value": None}),
    ],
)
def test_what_the_library_always_calls_success(spark: SparkSession, type_: str, kwargs: dict[str, Any]) -> None:
    """The trap is still there; that no suite of ours contains it is proven in tests/unit/gate/test_suite.py."""
    bad = spark.createDataFrame([("lost",)], "verdict string")
    trap = Planned(id="trap", type=type_, kwargs=kwargs, role=Role.FINDING, sentence="")
    assert run_on_spark("trap", bad, [trap]).success


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("column", ["verdict", "cause"])
def test_a_missing_column_is_an_error_and_not_bad_data(
    spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store: Store, rows: list[Row], column: str
) -> None:
    files, buckets = store(rows)
    for file in files:
        pq.write_table(pq.read_table(file).drop_columns([column]), file)
    report = validate(SparkCarrier(spark.sparkContext), pipeline, summaries, stored(files, buckets))
    assert report.answer is GateAnswer.ERROR
    assert f"`{column}`" in report.failures[0]


def test_a_column_missing_inside_the_library_is_seen_as_raised(spark: SparkSession) -> None:
    planned = Planned(
        id="x", type="expect_column_values_to_not_be_null", kwargs={"column": "gone"}, role=Role.EVIDENCE, sentence=""
    )
    run = run_on_spark("x", spark.createDataFrame([(1,)], "here int"), [planned])
    assert not run.success
    assert "gone" in str(run.outcomes[0].raised)
    with pytest.raises(KeyError, match="gone"):
        run_on_rows([Asked(name="x", row={"here": 1}, planned=[planned])])


def test_what_breaks_inside_the_library_breaks_every_row_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [Number(name=name, value=1, at_most=2, sentence="") for name in ("one", "other")]
    suite = HopSuite(hop="x", numbers=tuple(numbers))
    really = transposed.transpose

    def gone(*given: Any) -> transposed.TransposedNumbers:
        table = really(*given)
        return replace(table, columns={name: column for name, column in table.columns.items() if name != "margin"})

    monkeypatch.setattr(expectations, "transpose", gone)
    [run] = run_on_rows([suite])
    assert not run.success
    assert [outcome.id for outcome in run.outcomes if outcome.raised] == [
        expectation.id for expectation in suite.planned
    ]


@pytest.mark.usefixtures("place")
def test_a_missing_file_is_an_error(
    spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store: Store, rows: list[Row]
) -> None:
    verdicts, buckets = store(rows)
    gone = ["/nowhere/file.parquet"]
    for files in ((gone, buckets), (verdicts, gone), ([], buckets), (verdicts, [])):
        report = validate(SparkCarrier(spark.sparkContext), pipeline, summaries, stored(*files))
        assert report.answer is GateAnswer.ERROR


def test_a_number_that_is_not_known_is_an_error(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    summaries[1] = replace(summaries[1], target=replace(summaries[1].target, rows_counted=None))
    report = check_summaries(pipeline, summaries)
    assert report.answer is GateAnswer.ERROR
    assert report.failures == (
        "flights→warehouse: the number `target_rows_counted` is not known, so nothing can be concluded from it",
        "flights→warehouse: the number `target_rows_beyond_count` is not known, so nothing can be concluded from it",
    )


def test_an_unknown_number_of_expected_keys_is_an_error(checked: Check, rows: list[Row]) -> None:
    checked.summaries[0] = replace(checked.summaries[0], expected_rows=None)
    assert checked(rows).answer is GateAnswer.ERROR


def test_only_a_warning_failing_is_failure_to_the_library_and_a_note_to_the_gate(
    checked: Check, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_store = checked.summaries[1]
    checked.summaries[1] = replace(of_store, counts=replace(of_store.counts, matched=99, missing=1))
    checked.pipeline = replace(checked.pipeline, gate=replace(checked.pipeline.gate, missing=1))
    rows[150] = (rows[150][0], rows[150][1], "missing", None)
    report = checked(rows)
    assert (report.answer, report.failures) == (GateAnswer.PASS, ())
    assert report.document["notes"] == ["flights→warehouse: 1 key not matched and without a cause"]
    assert [run["success"] for run in report.document["runs"]] == [True, True, False, True]


@pytest.mark.usefixtures("place", "asks_spark")
def test_two_threads_on_one_session_each_get_their_own_answer(
    spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], rows: list[Row], tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    for file, verdicts in ((good, rows), (bad, [rows[1], *rows[1:]])):
        frame = pl.DataFrame(verdicts, schema=["hop", "key_hash", "verdict", "cause"], orient="row")
        frame.with_columns(bucket=pl.lit("00")).write_parquet(file)
    buckets = [one_bucket(tmp_path)]
    answers: dict[str, list[GateAnswer]] = {"good": [], "bad": []}

    def work(name: str, file: Path) -> None:
        for _ in range(2):
            answers[name].append(
                validate(SparkCarrier(spark.sparkContext), pipeline, summaries, stored([str(file)], buckets)).answer
            )

    threads = [threading.Thread(target=work, args=each) for each in (("good", good), ("bad", bad))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"good": [GateAnswer.PASS] * 2, "bad": [GateAnswer.ERROR] * 2}


@pytest.mark.usefixtures("place", "asks_spark")
def test_a_frame_of_another_session_is_not_answered_from_a_stale_view(
    spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store: Store, rows: list[Row]
) -> None:
    spark.createDataFrame(rows, "hop string, key_hash string, verdict string, cause string").createOrReplaceTempView(
        "tmp_view"
    )
    try:
        session = spark.newSession()
        bad, buckets = (
            session.read.parquet(*files) for files in store([(hop, key, None, None) for hop, key, _, _ in rows])
        )
        report = check_verdicts(pipeline, summaries, KeyedFrames(verdicts=bad, buckets=buckets))
        assert report.answer is GateAnswer.ERROR
    finally:
        spark.catalog.dropTempView("tmp_view")


@pytest.mark.usefixtures("asks_spark")
def test_no_view_is_left_in_the_session(checked: Check, rows: list[Row]) -> None:
    checked(rows)
    assert checked.spark.catalog.listTables() == []


def test_a_plan_that_changes_between_two_evaluations_is_refused(
    spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], tmp_path: Path
) -> None:
    live = spark.range(200).select(
        lit("outbox→flights").alias("hop"),
        rand().cast("string").alias("key_hash"),
        lit("matched").alias("verdict"),
        lit(None).cast("string").alias("cause"),
        lit("00").alias("bucket"),
    )
    buckets = spark.read.parquet(one_bucket(tmp_path))
    report = check_verdicts(pipeline, summaries, KeyedFrames(verdicts=live, buckets=buckets))
    assert report.answer is GateAnswer.ERROR
    assert "could change while they are checked" in report.failures[0]


def test_what_is_checked_is_the_files_and_not_the_plan_laid_over_them(
    spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store: Store, rows: list[Row]
) -> None:
    rows[0] = (rows[0][0], rows[0][1], "fine", None)
    verdicts, buckets = (spark.read.parquet(*files) for files in store(rows))
    embellished = verdicts.withColumn("verdict", lit("matched"))
    report = check_verdicts(pipeline, summaries, KeyedFrames(verdicts=embellished, buckets=buckets))
    assert "verdicts: 1 rows have a verdict that does not exist" in report.failures


def test_no_key_reaches_the_report(checked: Check, rows: list[Row]) -> None:
    broken = [(hop, key, f"bad {key}", None) for hop, key, _, _ in rows]
    report = checked(broken)
    output = json.dumps([report.failures, report.document], ensure_ascii=False)
    assert report.answer is GateAnswer.ERROR
    assert not [key for _, key, _, _ in rows if str(key) in output]
    assert len(output) < 14_000


@pytest.mark.usefixtures("asks_spark")
def test_the_running_spark_context_is_left_alone_and_nothing_is_written_or_sent(
    checked: Check,
    rows: list[Row],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = checked.spark.sparkContext.applicationId
    elsewhere = tmp_path / "cwd"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert checked(rows).answer is GateAnswer.PASS
    assert checked.spark.sparkContext.applicationId == application
    assert checked.spark.range(1).count() == 1
    assert list(elsewhere.iterdir()) == []
    assert "Calculating Metrics" not in "".join(capfd.readouterr())
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert not [record for record in caplog.records if record.name.startswith("great_expectations")]


def test_a_small_gate_stays_small(checked: Check, rows: list[Row], place: str) -> None:
    scheduler = checked.spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    checked(rows)
    assert scheduler.numTotalJobs() - before <= (0 if place == "in memory" else 24)
