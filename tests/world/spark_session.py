"""Start the one Spark session that a process can have, set for queries over a handful of rows."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from makewhole.config.connection_text import FILE_VARIABLE
from makewhole_spark import worker_daemon
from tests.world.installed import INSTALLED, ROOT

_SETTINGS = {
    "spark.python.daemon.module": worker_daemon.MODULE,
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # To compile a query takes longer than to run it over a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Through a socket of TCP every exchange with a Python worker waits for an acknowledgement that is delayed.
    "spark.python.unix.domain.socket.enabled": "true",
}


@contextmanager
def spark_session(master: str = "local[2]") -> Iterator[SparkSession]:
    """Start a small local session, and stop it at the end. Its workers read connections from a file: those of the
    environment are of the moment at which the session was started. They find the kinds of tables that tests install."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="makewhole-connections-") as folder:
        connections = Path(folder) / "connections.json"
        connections.write_text("{}")
        patch.setenv(FILE_VARIABLE, str(connections))
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # the workers need this environment's packages
        patch.setenv("PYTHONPATH", os.pathsep.join([str(INSTALLED), str(ROOT)]), prepend=os.pathsep)
        builder = SparkSession.builder.master(master).appName("tests")
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
