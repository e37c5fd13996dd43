"""Test the gate for each way in which clean keys, which have no row of their own, could hide something."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from makewhole.gate import HopSummary
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.pipeline import Pipeline
from makewhole_spark.spark_carrier import SparkCarrier
from makewhole_spark.validate import validate
from tests.integration.gate.conftest import HOPS, KEYS, BucketedRow, BucketRow, StoreClean, stored

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("place")]

LOST = 3
"""Keys of the second hop that the store lacks: one in bucket 00, two in bucket 01."""


class Check:
    """Rows of verdicts and buckets that agree, to be spoilt and checked."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store: StoreClean) -> None:
        self._spark, self._pipeline, self._store = spark, pipeline, store
        of_store = summaries[1]
        counts = replace(of_store.counts, matched=KEYS - LOST, missing=LOST, target_rows=KEYS - LOST)
        self.summaries = [replace(summaries[0], clean=KEYS), replace(of_store, counts=counts, clean=KEYS - LOST)]
        self.rows: list[BucketedRow] = [
            (HOPS[1], bucket, f"{number:032x}", "missing", "lost_after_topic", False)
            for number, bucket in enumerate(("00", "01", "01"))
        ]
        self.buckets: list[BucketRow] = [
            (HOPS[0], "00", 50, 50),
            (HOPS[0], "01", 50, 50),
            (HOPS[1], "00", 49, 50),
            (HOPS[1], "01", 48, 50),
        ]

    def __call__(self) -> GateReport:
        return validate(
            SparkCarrier(self._spark.sparkContext),
            self._pipeline,
            self.summaries,
            stored(*self._store(self.rows, self.buckets)),
        )


@pytest.fixture
def check(spark: SparkSession, pipeline: Pipeline, summaries: list[HopSummary], store_clean: StoreClean) -> Check:
    return Check(spark, pipeline, summaries, store_clean)


def test_clean_keys_and_exceptions_are_judged_together(check: Check) -> None:
    """Takes long where it is the first one on Spark, which starts."""
    report = check()
    assert (report.answer, report.failures) == (GateAnswer.FAIL, ("flights→warehouse: 3 keys missing, 0 allowed",))
    assert report.planned == report.evaluated

    check.rows, check.buckets = [], [*check.buckets[:2], (HOPS[1], "00", 50, 50), (HOPS[1], "01", 50, 50)]
    check.summaries = [check.summaries[0], _as_clean(check.summaries[0], check.summaries[1])]
    report = check()
    assert (report.answer, report.failures) == (GateAnswer.PASS, ())


def _as_clean(clean: HopSummary, other: HopSummary) -> HopSummary:
    """Return the numbers of a clean hop for another one."""
    return replace(clean, hop=other.hop, source=other.source, target=other.target)


def test_a_lost_exception_is_not_made_up_for_by_the_counts(check: Check) -> None:
    del check.rows[0]
    report = check()
    assert report.answer is GateAnswer.ERROR
    assert "verdicts: 2 rows were judged, the snapshots hold 3 keys besides 197 clean ones" in report.failures
    assert "flights→warehouse: 1 buckets have another number of verdicts than of keys" in report.failures


def test_an_exception_in_another_bucket_does_not_make_up_for_one_that_is_lost(check: Check) -> None:
    check.rows[0] = (check.rows[0][0], "01", *check.rows[0][2:])
    report = check()
    assert report.answer is GateAnswer.ERROR
    assert report.failures[0] == "flights→warehouse: 2 buckets have another number of verdicts than of keys"


def test_more_clean_keys_than_the_counts_say_do_not_pass(check: Check) -> None:
    check.buckets[2] = (HOPS[1], "00", 50, 50)
    report = check()
    assert report.answer is GateAnswer.ERROR
    assert "flights→warehouse: 98 keys clean in the buckets, 97 in the counts" in report.failures


def test_a_bucket_that_has_no_row_does_not_pass(check: Check) -> None:
    del check.buckets[0]
    report = check()
    assert report.answer is GateAnswer.ERROR
    assert "outbox→flights: the buckets hold 50 keys, the snapshots 100" in report.failures


@pytest.mark.parametrize("row", [(HOPS[0], None, 50, 50), (HOPS[0], "01", None, 50), (HOPS[0], "01", 50, None)])
def test_a_bucket_of_which_something_is_not_known_does_not_pass(check: Check, row: BucketRow) -> None:
    check.buckets[0:2] = [(HOPS[0], "00", 50, 50), row]
    assert check().answer is (GateAnswer.FAIL if row[1] is None else GateAnswer.ERROR)


def test_a_bucket_that_has_two_rows_does_not_pass(check: Check) -> None:
    check.buckets[1] = check.buckets[0]
    assert check().answer is GateAnswer.ERROR


def test_clean_keys_without_any_row_of_a_bucket_do_not_pass(check: Check) -> None:
    check.buckets = []
    report = check()
    assert report.answer is GateAnswer.ERROR
    assert "outbox→flights: 0 keys clean in the buckets, 100 in the counts" in report.failures
