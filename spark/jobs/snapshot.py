"""Run the job that takes the snapshots of a window."""

from makewhole.journal import incidents
from makewhole.model.incident_text import incident_sentence
from makewhole_spark.job import Job, main
from makewhole_spark.snapshot.take import take_snapshots


def run(job: Job) -> str:
    points = take_snapshots(job.spark, job.journal, job.context, job.spark.sparkContext.defaultParallelism)
    happened = [incident_sentence(incident) for incident in incidents.of(job.journal, job.context.window)]
    return "\n  ".join([f"snapshots taken: {', '.join(points) or 'none, they were there'}", *happened])


if __name__ == "__main__":
    main("makewhole snapshot", run)
