"""Run the job that asks the gate about a window."""

from makewhole_spark.job import main
from makewhole_spark.window_steps import VALIDATE

if __name__ == "__main__":
    main(VALIDATE)
