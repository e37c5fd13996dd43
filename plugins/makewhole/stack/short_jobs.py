"""The JVM of short Spark jobs, as the local stack and the tests run them."""

from makewhole.stack.class_archive import Program, sharing

# The row work is Python's; for short jobs the JVM's second compiler costs more processor time than it saves.
SHORT_JOB = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def short_job_jvm() -> str:
    """Java's options for `JDK_JAVA_OPTIONS`."""
    return " ".join([*SHORT_JOB, *sharing(Program.SPARK)])
