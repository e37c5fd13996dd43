"""Run the job that asks the gate about a window."""

from makewhole_spark.job import Job, main
from makewhole_spark.validate import validate_window


def run(job: Job) -> str:
    report = validate_window(job.spark, job.journal, job.context)
    return f"the gate says {report.answer.value}" + "".join(f"\n  {failure}" for failure in report.failures)


if __name__ == "__main__":
    main("makewhole validate", run)
