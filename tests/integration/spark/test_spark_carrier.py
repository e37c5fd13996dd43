"""Test tasks carried to Spark's workers: without a query, and nothing of one left for the next."""

import gc
import resource
import sys
from zipimport import zipimporter

import numpy as np
import pytest
from pyspark.sql import SparkSession

from makewhole_spark.spark_carrier import SparkCarrier

pytestmark = pytest.mark.integration


def zips(_: int) -> int:
    return sum(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())


def walked(_: int) -> tuple[int, int]:
    """Return how many objects a collection of garbage leaves out, and how many it walks over."""
    return gc.get_freeze_count(), len(gc.get_objects())


def pages_got(_: int) -> int:
    """Return how many pages of memory the kernel gives for some large arrays, for the third time."""
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        arrays = [np.ones(1 << 20) for _ in range(10)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_worker_that_was_used_before_holds_no_zip_whose_directory_would_be_read_again(spark: SparkSession) -> None:
    SparkCarrier(spark.sparkContext).carry(range(32), zips)
    assert (
        SparkCarrier(spark.sparkContext).carry(range(32), zips).count(0) > 16
    )  # Spark may start another worker meanwhile


def test_collecting_garbage_after_a_task_does_not_walk_over_the_loaded_modules(spark: SparkSession) -> None:
    SparkCarrier(spark.sparkContext).carry(range(32), walked)
    frozen, left = max(SparkCarrier(spark.sparkContext).carry(range(32), walked))
    assert frozen > 10 * left


def test_memory_that_a_task_frees_is_kept_for_its_next_chunk(spark: SparkSession) -> None:
    assert max(SparkCarrier(spark.sparkContext).carry(range(8), pages_got)) < 1_000  # of 20,480


def test_a_list_of_tasks_is_carried_without_a_query_that_spark_would_have_to_plan(spark: SparkSession) -> None:
    def queries() -> int:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return int(spark._jsparkSession.sharedState().statusStore().executionsCount())

    before = queries()

    assert SparkCarrier(spark.sparkContext).carry([-1, 2], abs) == [1, 2]
    assert queries() == before
    spark.range(1).collect()
    assert queries() == before + 1
