"""Run the job that publishes a window."""

from makewhole_spark.step_names import PUBLISH
from makewhole_spark.submitted import main

if __name__ == "__main__":
    main(PUBLISH)
