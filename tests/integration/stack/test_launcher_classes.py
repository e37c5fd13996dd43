"""Test that the program by which spark-submit finds its command takes its classes from Java's own archive."""

import os
import subprocess

import pytest

from makewhole.stack.class_archive import launcher_jvm, short_job_jvm
from makewhole.stack.maven_jars import java

pytestmark = pytest.mark.integration


def test_java_takes_its_own_archive_of_classes_beside_the_options_of_spark() -> None:
    """With `-Xshare:on` it refuses to start without an archive."""
    options = [*launcher_jvm().split(), "-Xshare:on", "-Xlog:cds=info", "-version"]
    variables = {**os.environ, "JDK_JAVA_OPTIONS": short_job_jvm()}

    done = subprocess.run([java(), *options], env=variables, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "classes.jsa" in done.stdout
    assert "spark-" not in done.stdout
