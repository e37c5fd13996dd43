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
    held = [answer for answer in answers if answer.held_in_doubt]
    targets = {hop.name: hop.target for hop in pipeline.hops}
    by_point: dict[str, list[BucketAnswer]] = {}
    for answer in held:
        by_point.setdefault(targets[answer.hop], []).append(answer)
    tables = (pipeline.points[name] for name in sorted(by_point))
    return [_incident(table, by_point[table.name]) for table in tables if can_look_up(table)]


def _incident(table: TablePoint, answers: Sequence[BucketAnswer]) -> Incident:
    transactions = together(*(answer.in_doubt for answer in answers))
    return Incident(
        kind=IncidentKind.PREPARED_TRANSACTION,
        point=table.name,
        topic=table.table,
        topic_id="",
        detail={
            "keys": sum(answer.held_in_doubt for answer in answers),
            "transactions": evidence_of_doubt(transactions)["in_doubt"],
            "number": len(transactions),
        },
    )
