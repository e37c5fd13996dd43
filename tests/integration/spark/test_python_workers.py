"""Test what Python workers have loaded before their first task, and that they are there before it is known."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from makewhole_spark.spark_carrier import SparkCarrier

pytestmark = pytest.mark.integration


def daemon(_: int) -> tuple[str, bool, bool]:
    """Return the module that the daemon of this worker runs, and whether it had loaded numba's compiler and polars."""
    place = Path(f"/proc/{os.getppid()}")
    mapped = (place / "maps").read_text()
    return (place / "cmdline").read_bytes().split(b"\0")[2].decode(), "llvmlite" in mapped, "polars" in mapped


def started_at(_: int) -> float:
    """Return the moment at which this worker was forked, in seconds since the start of the machine."""
    time.sleep(0.2)  # so that the other worker has the other task
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def kept_megabytes(size: int) -> int:
    """Make a frame of so many megabytes with polars and free it; return by how many this worker is larger a second
    later: half of what is freed is given back after half of the five seconds."""
    import polars as pl

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

    before = resident()
    pl.int_range(size << 17, eager=True).clear()
    time.sleep(1)
    return resident() - before


def test_workers_are_forked_from_a_process_that_has_loaded_what_all_tasks_need_and_no_polars(
    spark: SparkSession,
) -> None:
    assert set(SparkCarrier(spark.sparkContext).carry(range(4), daemon)) == {
        ("makewhole_spark.worker_daemon", True, False)
    }


@pytest.mark.extended
def test_the_workers_of_a_job_are_started_before_its_first_tasks_are_known_and_keep_what_polars_frees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Takes long: an application of Spark starts."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=os.pathsep)
    submit = Path(sys.executable).with_name("spark-submit")
    job = Path(__file__).with_name("started_workers_job.py")

    ended = subprocess.run([submit, "--master", "local[2]", job], capture_output=True, text=True)

    assert (ended.returncode, ended.stdout) == (0, "ready: [True, True]\nkept: True\n"), ended.stderr
