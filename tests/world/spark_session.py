"""Start the one Spark session that a process can have."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest
from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def spark_session(
    master: str = "local[2]", settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Start a small local session, and stop it at the end; `settings` beside the usual ones, or instead of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # the workers need this environment's packages
        builder = SparkSession.builder.master(master).appName("tests")
        for name, value in {**_SETTINGS, **settings}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
