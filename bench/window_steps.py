"""Run the Spark steps of a window as its tasks do, one spark-submit each; print the seconds of each."""

import subprocess
import sys
import time
from pathlib import Path

_JOBS = Path(__file__).parents[1] / "spark" / "jobs"
_SETTINGS = ("--master", "local[2]", "--driver-memory", "2g", "--conf", "spark.ui.enabled=false")
_STEPS = ("snapshot", "reconcile", "validate")


def main() -> None:
    """Run the steps of the window that the arguments name, then wait for the end of the input."""
    submit = str(Path(sys.executable).with_name("spark-submit"))
    seconds = {}
    for step in _STEPS:
        began = time.perf_counter()
        command = [submit, *_SETTINGS, str(_JOBS / f"{step}.py"), *sys.argv[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{step} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-1000:]}")
        seconds[step] = time.perf_counter() - began
    print(", ".join(f"{step} {taken:.1f} s" for step, taken in seconds.items()), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
