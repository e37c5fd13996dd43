"""Run the job that takes the snapshots of a window; with `--through` it goes on with the next steps."""

from makewhole_spark.job import main
from makewhole_spark.window_steps import SNAPSHOT

if __name__ == "__main__":
    main(SNAPSHOT)
