"""Describe the machine that was measured on: no host names, no paths."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.datacompy_environment import locked_version
from bench.jars import CONNECTOR_VERSION
from makewhole.stack.kafka_jars import KAFKA_VERSION
from makewhole.stack.maven_jars import java

_PACKAGES = ("pyspark", "pyarrow", "polars", "polars-hash", "numpy", "aiokafka", "confluent-kafka", "google-crc32c")


def described() -> dict[str, str]:
    """Return name to text, in the order to be shown."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}",
        "Python": platform.python_version(),
        "Java": _java_version(),
        "Kafka": KAFKA_VERSION,
        "Spark's Kafka connector": CONNECTOR_VERSION,
        **{name: version(name) for name in _PACKAGES},
        "datacompy": locked_version("datacompy"),
    }


def load() -> float:
    """Return how many processes wanted a core over the last minute: far above zero before a run, and its times say
    little."""
    return os.getloadavg()[0]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _java_version() -> str:
    done = subprocess.run([java(), "-version"], capture_output=True, text=True)
    return done.stderr.split('"')[1] if '"' in done.stderr else "unknown"
