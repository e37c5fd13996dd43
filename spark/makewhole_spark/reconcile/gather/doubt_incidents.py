"""Build the incidents of transactions in doubt that may hold keys of a window at its stores."""

from collections.abc import Sequence

from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, can_look_up
from makewhole.tables.in_doubt import evidence_of_doubt, together
from makewhole_spark.reconcile.bucket.answer import BucketAnswer


def doubt_incidents(pipeline: Pipeline, answers: Sequence[BucketAnswer]) -> list[Incident]:
    """Return one incident for each table of which keys of the window may be held; none for a table whose transactions
    in doubt concern no key."""
    tables = (point for point in pipeline.ordered_points() if can_look_up(point))
    return [_incident(pipeline, table, keys, answers) for table in tables if (keys := _number(table, answers))]


def _number(table: TablePoint, answers: Sequence[BucketAnswer]) -> int:
    return sum(answer.held_in_doubt.get(table.name, 0) for answer in answers)


def _incident(pipeline: Pipeline, table: TablePoint, keys: int, answers: Sequence[BucketAnswer]) -> Incident:
    targets = {hop.name: hop.target for hop in pipeline.hops}
    transactions = together(
        *(
            answer.in_doubt if targets[answer.hop] == table.name else answer.source_in_doubt
            for answer in answers
            if answer.held_in_doubt.get(table.name)
        )
    )
    return Incident(
        kind=IncidentKind.PREPARED_TRANSACTION,
        point=table.name,
        topic=table.table,
        topic_id="",
        detail={
            "keys": keys,
            "transactions": evidence_of_doubt(transactions)["in_doubt"],
            "number": len(transactions),
        },
    )
