"""Run the Spark steps of a window as its first task does, in one application; print the seconds of each.

Java has the options that the local stack gives it: those for short jobs, and the archive of its classes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from makewhole.stack.class_archive import launcher_jvm, short_job_jvm
from makewhole_spark.step_names import STEPS

_JOBS = Path(__file__).parents[2] / "spark" / "jobs"
_SETTINGS = ("--driver-memory", "2g", "--conf", "spark.ui.enabled=false")
_GOES_ON = "this application goes on with "
_TAIL = 3000  # characters of what a failed application said


def main() -> None:
    """Run the steps of the window that the arguments name, then wait for the end of the input."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--master", required=True)
    parser.add_argument("--conf", action="append", default=[])
    wanted, window = parser.parse_known_args()
    settings = [
        *_SETTINGS,
        "--master",
        wanted.master,
        *(part for setting in wanted.conf for part in ("--conf", setting)),
    ]
    submit = str(Path(sys.executable).with_name("spark-submit"))
    command = [submit, *settings, str(_JOBS / f"{STEPS[0]}.py"), *window, "--through", STEPS[-1]]
    began, moments, lines = time.perf_counter(), [0.0], list[str]()
    variables = {**os.environ, "JDK_JAVA_OPTIONS": short_job_jvm(), "SPARK_LAUNCHER_OPTS": launcher_jvm()}
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=variables) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if _GOES_ON in line:
                moments.append(time.perf_counter() - began)
        process.wait()
        moments.append(time.perf_counter() - began)
        if process.returncode or len(moments) != len(STEPS) + 1:
            log.seek(0)
            complaints = f"{log.read()[-_TAIL:]}\n{''.join(lines)[-_TAIL:]}"
            sys.exit(f"{STEPS[0]} ended with {process.returncode}\n{complaints}")
    seconds = {step: end - start for step, start, end in zip(STEPS, moments, moments[1:], strict=False)}
    print(", ".join(f"{step} {taken:.1f} s" for step, taken in seconds.items()), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
