"""Opens the writer that fits a target's kind."""

from contextlib import ExitStack

from makewhole.compensation.kafka_target import KafkaTarget
from makewhole.compensation.postgres_target import PostgresTarget
from makewhole.compensation.targets import Target, TargetWriter
from makewhole.kafka.replay import ReplayWriter
from makewhole.model.connection import KafkaConnection, PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint, TopicPoint
from makewhole.model.plan import Plan
from makewhole.postgres.connect import connect
from makewhole.postgres.receipts import ensure_schema


def open_writer(stack: ExitStack, plan: Plan, name: str, target: Target, lease_epoch: int) -> TargetWriter:
    """The writer for a target, closed with the stack."""
    if isinstance(target.point, TopicPoint) and isinstance(target.connection, KafkaConnection):
        writer = ReplayWriter(target.connection, target.point.topic, f"replay-{plan.id}-{name}")
        stack.callback(writer.close)
        return KafkaTarget(plan, writer)
    if isinstance(target.point, TablePoint) and isinstance(target.connection, PostgresConnection):
        session = stack.enter_context(connect(target.connection))
        ensure_schema(session)
        return PostgresTarget(plan, target.point, session, lease_epoch)
    raise RefusedError(f"point {name} and its connection {target.connection.id} are of different kinds")
