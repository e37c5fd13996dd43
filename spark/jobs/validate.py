"""Run the job that asks the gate about a window."""

from makewhole_spark.step_names import VALIDATE
from makewhole_spark.submitted import main

if __name__ == "__main__":
    main(VALIDATE)
