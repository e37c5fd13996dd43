"""Run the job that takes the snapshots of a window; with `--through` it goes on with the next steps."""

from makewhole_spark.step_names import SNAPSHOT
from makewhole_spark.submitted import main

if __name__ == "__main__":
    main(SNAPSHOT)
