"""Job: take the snapshots of a window."""

from makewhole_spark.job import Job, main
from makewhole_spark.snapshot import take_snapshots


def run(job: Job) -> str:
    points = take_snapshots(job.spark, job.journal, job.context, job.spark.sparkContext.defaultParallelism)
    return f"snapshots taken: {', '.join(points) or 'none, they were there'}"


if __name__ == "__main__":
    main("makewhole snapshot", run)
