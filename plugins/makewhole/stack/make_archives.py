"""Make the archives of classes: a small Spark job and a small Kafka show Java what such programs load."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from makewhole.model.errors import PermanentError
from makewhole.stack.class_archive import SHORT_JOB, Program, has_archive, recording
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import LOOPBACK

_SPARK_TIMEOUT_SECONDS, _KAFKA_TIMEOUT_SECONDS = 300, 60


def make_archives() -> None:
    """Make the archives that this environment does not have yet.

    Raises:
        PermanentError: Spark does not work here.
        TransientError: Kafka did not start.
    """
    for program, make in ((Program.SPARK, _of_spark), (Program.KAFKA, _of_kafka)):
        if not has_archive(program):
            print(f"keeping what Java loads for {program.capitalize()}, so that it starts quicker", file=sys.stderr)
            make()


def _of_spark() -> None:
    with recording(Program.SPARK) as options:
        done = subprocess.run(
            [sys.executable, "-m", "makewhole_spark.class_archive_job"],
            env={
                **os.environ,
                "JDK_JAVA_OPTIONS": " ".join([*SHORT_JOB, *options]),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": LOOPBACK,
            },
            capture_output=True,
            text=True,
            timeout=_SPARK_TIMEOUT_SECONDS,
        )
        if done.returncode != 0:
            raise PermanentError(f"a small Spark job failed; check Java and the disk\n{done.stderr[-2000:]}")


def _of_kafka() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="makewhole-archive-") as folder,
        recording(Program.KAFKA) as options,
        KafkaServer(Path(folder), jvm_options=options) as server,
    ):
        server.process(1).stop(grace_seconds=_KAFKA_TIMEOUT_SECONDS)  # the archive is written at its end


if __name__ == "__main__":
    make_archives()
