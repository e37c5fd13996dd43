"""Test that a step which hangs in Spark is ended at its time limit, and the whole application with it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.extended]


@pytest.mark.parametrize(("code", "level"), [(64, "ERROR"), (0, "WARNING")])
def test_an_application_that_hangs_ends_with_the_exit_code_of_its_limit(
    code: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long: an application of Spark starts, and hangs for some seconds."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    submit = Path(sys.executable).with_name("spark-submit")
    began = time.monotonic()

    ended = subprocess.run(
        [submit, "--master", "local[1]", Path(__file__).with_name("sleeping_job.py"), str(code)],
        capture_output=True,
        text=True,
    )

    assert ended.returncode == code, ended.stdout + ended.stderr
    assert f"{level} makewhole: it hangs" in ended.stdout
    assert time.monotonic() - began < 200
