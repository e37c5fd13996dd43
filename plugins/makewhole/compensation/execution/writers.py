"""Open the writer for a target's kind."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from makewhole.compensation.execution.kafka_target import KafkaTarget
from makewhole.compensation.execution.look_again.look_again import LookAgain
from makewhole.compensation.execution.rescan import chunks_in_topic
from makewhole.compensation.execution.table_target import TableTarget
from makewhole.compensation.execution.targets import KeptRows, PlanAtTarget, Target, TargetWriter
from makewhole.journal.plans import LogEnds
from makewhole.kafka.offsets import stable_offsets
from makewhole.kafka.replay import ReplayWriter, replay_identity
from makewhole.kinds import tables_of
from makewhole.model.connection import kafka_of
from makewhole.model.points import has_log


def open_writer(
    stack: ExitStack, targets: Mapping[str, Target], plan: PlanAtTarget, kept_rows: KeptRows | None = None
) -> TargetWriter:
    """Open the writer for the plan's target, closed with the stack. All `targets` may be asked before it writes, and
    `kept_rows` before rows of a table are put aside."""
    target = targets[plan.target]
    point, connection = target.point, target.connection
    look_again = stack.enter_context(LookAgain(targets, plan.in_journal, plan.keys))
    if has_log(point):
        identity, kafka = replay_identity(plan.plan.id, plan.target), kafka_of(connection)
        writer = ReplayWriter(kafka, point.topic, identity, point.partitioner)
        stack.callback(writer.close)
        return KafkaTarget(writer, plan, partial(chunks_in_topic, kafka, point.topic, plan), look_again)
    rows = stack.enter_context(tables_of(connection).writer(point, f"writing {point.table}"))
    return TableTarget(plan, point, rows, look_again, kept_rows)


def log_ends(targets: Mapping[str, Target]) -> LogEnds:
    """Return where the logs of the topics among these targets end now: what a plan writes comes after that."""
    return {
        name: stable_offsets(kafka_of(target.connection), target.point.topic)
        for name, target in targets.items()
        if has_log(target.point)
    }
