"""Keep Java's archives of loaded classes: one file that a JVM maps at its start, in place of a hundred jars to parse.

A short Spark job and a small Kafka spend most of their processor time there. An archive is an aid only: Java compares
it with its own version and with every jar, and reads the jars as ever when anything differs.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from makewhole.stack.kafka_jars import kafka_libs
from makewhole.stack.maven_jars import java

SHORT_JOB = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For the JVM of short Spark jobs: the row work is Python's, and the second compiler costs more than it saves."""

_QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


class Program(StrEnum):
    """The programs that there are archives of."""

    SPARK = "spark"
    KAFKA = "kafka"


def sharing(program: Program) -> Sequence[str]:
    """Return Java's options that use the archive of a program; none when there is no archive."""
    archive = _archive(program)
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *_QUIET] if archive.exists() else []


def short_job_jvm() -> str:
    """Return Java's options for short Spark jobs, as `JDK_JAVA_OPTIONS` takes them."""
    return " ".join([*SHORT_JOB, *sharing(Program.SPARK)])


def launcher_jvm() -> str:
    """Return Java's options for the small program by which spark-submit finds its command, as `SPARK_LAUNCHER_OPTS`
    takes them: Java's own archive of classes, since to refuse that of Spark takes it longer than its work."""
    own = Path(java()).resolve().parents[1] / "lib" / "server" / "classes.jsa"
    return f"-XX:SharedArchiveFile={own}" if own.exists() else ""


def has_archive(program: Program) -> bool:
    """Return whether this environment has one, made by this Java of these jars."""
    return _archive(program).exists()


@contextmanager
def recording(program: Program) -> Iterator[Sequence[str]]:
    """Yield Java's options that make the archive of a program of what one JVM loads; it must have ended when this
    does."""
    archive = _archive(program)
    archive.parent.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(f".{os.getpid()}")
    try:
        yield [f"-XX:ArchiveClassesAtExit={made}", *_QUIET]
        if made.exists():
            for stale in archive.parent.glob(f"{program}-*.jsa"):
                stale.unlink()
            made.rename(archive)
    finally:
        made.unlink(missing_ok=True)


def _archive(program: Program) -> Path:
    """Return the path in the environment, under the name of the Java that made it and of the jars that it read: gone
    when either is another, or elsewhere."""
    command = Path(java()).resolve()
    made_by = [command, *sorted(_jars(program).iterdir())]
    stamps = ((path, path.stat().st_size, path.stat().st_mtime_ns) for path in made_by)
    digest = hashlib.sha256(repr([(str(path), size, time) for path, size, time in stamps]).encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "makewhole" / f"{program}-{digest}.jsa"


def _jars(program: Program) -> Path:
    """Return the folder with the jars of a program."""
    if program is Program.KAFKA:
        return kafka_libs()
    pyspark = find_spec("pyspark")
    assert pyspark is not None and pyspark.origin is not None
    return Path(pyspark.origin).with_name("jars")
