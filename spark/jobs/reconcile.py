"""Run the job that judges every hop of a window."""

from makewhole.journal import incidents
from makewhole.model.incident_text import incident_sentence
from makewhole.window.consumer_groups import OF_GROUPS
from makewhole_spark.job import Job, main
from makewhole_spark.reconcile.judge_window import reconcile


def run(job: Job) -> str:
    results = reconcile(job.spark, job.journal, job.context)
    found = [
        f"{hop}: {result.counts.matched} of {result.counts.source_keys} matched, {result.counts.pending} pending"
        for hop, result in results.items()
    ]
    happened = [one for one in incidents.of(job.journal, job.context.window) if one.kind in OF_GROUPS]
    return "\n  ".join(["; ".join(found), *(incident_sentence(one) for one in happened)])


if __name__ == "__main__":
    main("makewhole reconcile", run)
