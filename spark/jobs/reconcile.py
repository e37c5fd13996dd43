"""Run the job that judges every hop of a window."""

from makewhole_spark.job import Job, main
from makewhole_spark.reconcile.judge_window import reconcile


def run(job: Job) -> str:
    results = reconcile(job.spark, job.journal, job.context)
    return "; ".join(
        f"{hop}: {result.counts.matched} of {result.counts.source_keys} matched" for hop, result in results.items()
    )


if __name__ == "__main__":
    main("makewhole reconcile", run)
