"""Test the gate on verdicts that an object store keeps: few are read into memory, many by Spark's workers."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import pytest
from pyspark.sql import SparkSession

from makewhole.compute.frames import BUCKETS, VERDICTS
from makewhole.gate import HopSummary
from makewhole.lake.storage import Storage
from makewhole.model.gate import GateAnswer
from makewhole.model.pipeline import Pipeline
from makewhole_spark.spark_carrier import SparkCarrier
from makewhole_spark.validate import StoredVerdicts, validate
from tests.integration.cluster.object_store import BUCKET, ObjectStore
from tests.integration.gate.conftest import HOPS, KEYS
from tests.world.environment import set_connection

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    made = ObjectStore.start(tmp_path_factory.mktemp("s3"), "AKPLANTED", "a-planted-secret-key")
    yield made
    made.stop()


@pytest.mark.usefixtures("place")
def test_verdicts_of_an_object_store_are_checked_as_those_of_a_folder_are(
    spark: SparkSession,
    pipeline: Pipeline,
    summaries: list[HopSummary],
    object_store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_connection(monkeypatch, "storage", object_store.connection)
    storage = Storage(root=f"s3://storage@{BUCKET}/gate")
    counts = replace(summaries[1].counts, matched=KEYS - 1, missing=1, target_rows=KEYS - 1)
    summaries = [replace(summaries[0], clean=KEYS), replace(summaries[1], counts=counts, clean=KEYS - 1)]
    lost = pl.DataFrame([(HOPS[1], "00", f"{7:032x}", "missing", "lost", False)], schema=VERDICTS, orient="row")
    buckets = [(hop, "00", summary.clean, KEYS) for hop, summary in zip(HOPS, summaries, strict=True)]
    stored = StoredVerdicts(
        storage=storage,
        verdicts=[storage.write_parquet("verdicts", lost[at:]) for at in range(2)],
        buckets=[storage.write_parquet("buckets", pl.DataFrame(buckets, schema=BUCKETS, orient="row"))],
    )

    report = validate(SparkCarrier(spark.sparkContext), pipeline, summaries, stored)

    assert (report.answer, report.failures) == (GateAnswer.FAIL, ("flights→warehouse: 1 key missing, 0 allowed",))
    assert report.planned == report.evaluated

    for path in stored.verdicts:
        storage.remove(path)
    gone = validate(SparkCarrier(spark.sparkContext), pipeline, summaries, stored)
    assert gone.answer is GateAnswer.ERROR
