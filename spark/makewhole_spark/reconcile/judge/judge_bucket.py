"""Judge one bucket of one hop on an executor, step by step."""

from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.asked import AskedOfTails
from makewhole_spark.reconcile.judge.confirmed import confirm_verdicts
from makewhole_spark.reconcile.judge.first_pass import first_pass
from makewhole_spark.reconcile.judge.gathered import gather_copies
from makewhole_spark.reconcile.judge.marks import mark_exceptions
from makewhole_spark.reconcile.judge.write_answer import write_answer


def judge_bucket(task: BucketTask) -> BucketAnswer:
    """Take the clean keys out; of the others gather all copies, give verdicts and confirm them by look-ups, mark those
    that something else explains, and write the answer."""
    first = first_pass(task)
    gathered = gather_copies(task, first)
    confirmed = confirm_verdicts(task, first, gathered.known)
    asked = AskedOfTails.of(task, confirmed.judged, confirmed.rows)
    marked = mark_exceptions(task, confirmed.judged, confirmed.known)
    return write_answer(task, first, gathered, confirmed, marked, asked)
