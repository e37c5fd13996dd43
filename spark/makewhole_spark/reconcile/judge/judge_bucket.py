"""Judge one bucket of one hop on an executor, step by step."""

import polars as pl

from makewhole.compute.judge.judge_copies import BucketInput, judge
from makewhole.compute.judge.judge_versions import judge_versions
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.certified import mark_repeated
from makewhole_spark.reconcile.judge.first_pass import first_pass
from makewhole_spark.reconcile.judge.gather_copies import gather_copies
from makewhole_spark.reconcile.judge.grouped.kernel import run_group_kernel
from makewhole_spark.reconcile.judge.look_up_again import look_up_again
from makewhole_spark.reconcile.judge.marks import mark_exceptions
from makewhole_spark.reconcile.judge.other_sources import SourcesTogether, compare_sources
from makewhole_spark.reconcile.judge.second_round import ask_second_round
from makewhole_spark.reconcile.judge.write_answer import write_answer


def judge_bucket(task: BucketTask) -> BucketAnswer:
    """Give every key of a bucket its verdict, and write the answer.

    A key is `missing` when all of this holds:

    - The source has it in this window, in copies that pass the hop's filter; or it was handed over to the window by
      name; or the source has or had it, and a truncation that this window noticed took its copy at the target. Under
      upsert the latest of its versions is no deletion, and the target has no row of the key at all.
    - The target has no copy of it that counts, neither in the window's slice nor elsewhere: in other windows
      (`gather_copies`), in the table itself, which is asked for it by key (`look_up_again`), or in the rest of the
      topic's log, which is read for it (`second_round`).
    - Its absence counts: it is in flight no more, or has waited for too long (`pending`), and no transaction in doubt
      may hold it (`in_doubt`), or has for too long.
    - Nothing else explains it (`marks`): it is not from before the baseline, no record that is gone or could not be
      read may be its copy, no change of the pipeline's file explains it, no store says that it was erased, and no
      certified window saw it in the store.

    The kernel decides the first three, from the copies of the keys and from whose absence does not count yet. It runs
    twice: by its first verdicts keys are looked up, and where that changed what is known the second ones count.
    """
    first = first_pass(task)
    gathered = gather_copies(task, first)
    at_first = run_kernel(task, gathered.known)
    looked_up = look_up_again(task, gathered, at_first, first)
    sources = SourcesTogether.of(task, looked_up.known, at_first)
    with_others = sources.with_later_versions(looked_up.known)
    judged = at_first if with_others.is_same_as(gathered.known) else run_kernel(task, with_others)
    judged, of_others = compare_sources(sources, judged, looked_up.known)
    judged, repeated_from = mark_repeated(task, judged)
    marked = mark_exceptions(task, judged, looked_up)
    asked = ask_second_round(task, first, looked_up, judged, repeated_from, marked)
    return write_answer(task, first, looked_up, marked, of_others, asked)


def run_kernel(task: BucketTask, known: BucketInput) -> pl.DataFrame:
    """Return the verdict of each key (`JUDGED`) by what is known of it. Of events the copies are counted
    (`makewhole.compute.judge.judge_copies`), of versions the target must hold the latest
    (`makewhole.compute.judge.judge_versions`), and a row of many records must add them up
    (`makewhole.compute.judge.grouped`)."""
    if task.hop.group is not None:
        return run_group_kernel(task, known)
    return judge_versions(known) if task.is_upsert else judge(known)
