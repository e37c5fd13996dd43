"""Begin a submitted job: read its arguments, start its session in a thread, then load what its steps need and run.

What is imported here is imported before the session begins to start, and delays it.
"""

import argparse
import gc

from makewhole_spark.step_names import STEPS
from makewhole_spark.unzipped import prefer_installed_pyspark


def main(step: str) -> None:
    """Run the job of a step, and exit with its code."""
    gc.disable()  # what is loaded stays; `run_job` looks for garbage again
    wanted = _arguments(step)
    prefer_installed_pyspark()
    label = f"{wanted.pipeline} window {wanted.window} (revision {wanted.revision})"

    from makewhole_spark.spark_start import spark_in_thread

    starting = spark_in_thread(f"makewhole {step}: {label}")

    from makewhole_spark.job import run_job

    run_job(wanted, starting)


def _arguments(step: str) -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=f"makewhole {step}")
    arguments.set_defaults(step=step)
    arguments.add_argument("--pipeline", required=True)
    arguments.add_argument("--window", required=True, type=int)
    arguments.add_argument("--revision", required=True, type=int)
    arguments.add_argument(
        "--through", choices=STEPS, default=step, help="the last step to go on with; by default there is none after"
    )
    arguments.add_argument("--asked-by", default="", help="the run of Airflow that submits this")
    arguments.add_argument("--dag", default="", help="the DAG of that run")
    return arguments.parse_args()
