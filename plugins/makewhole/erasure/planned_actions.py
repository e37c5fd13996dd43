"""Take the actions of a key out of plans that ended: their payloads, and what they left at their targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.freezing.payload_file import SCHEMA
from makewhole.compensation.freezing.plan_hash import plan_hash
from makewhole.journal.actions import copied_lines
from makewhole.journal.database import JournalSession
from makewhole.journal.retention.erasures import PlanOfKey
from makewhole.kinds import tables_of
from makewhole.lake.storage import Storage, StoredFile
from makewhole.model.connection import Connection
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.sql import PgConnection
from makewhole.tables.receipts import ActionsOfKey


@dataclass(frozen=True, kw_only=True)
class AtTargets:
    """The number of rows removed at targets of plans; and what stays there, with the reason, each a sentence."""

    rows: int
    stays: tuple[str, ...]


def payload_path(storage: Storage, files: Sequence[StoredFile], plan: PlanOfKey) -> str | None:
    """Return the path of the payloads of a plan, if they are there."""
    return next((file.path for file in files if storage.uri(file.path) == plan.payload_uri), None)


def payloads_without(storage: Storage, path: str, seqs: Sequence[int]) -> bytes:
    """Return a file of payloads in which those of some actions are empty; each chunk keeps its row group and its
    actions."""
    whole = pa.BufferReader(storage.read_bytes(path))
    sink = pa.BufferOutputStream()
    with pq.ParquetFile(whole) as file, pq.ParquetWriter(sink, SCHEMA, compression="zstd") as writer:
        for at in range(file.num_row_groups):
            group = file.read_row_group(at)
            is_gone = pc.is_in(group.column("seq"), pa.array(list(seqs), pa.int32()))
            columns = [
                group.column(name)
                if name == "seq"
                else pc.if_else(
                    is_gone,
                    pa.scalar("{}" if name == "extra" else None, group.schema.field(name).type),
                    group.column(name),
                )
                for name in SCHEMA.names
            ]
            writer.write_table(pa.table(columns, schema=SCHEMA), row_group_size=max(1, len(group)))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def erase_at_targets(
    session: JournalSession, pipeline: Pipeline, connections: Mapping[str, Connection], plans: Sequence[PlanOfKey]
) -> AtTargets:
    """Remove the effects of a key at every target of its plans, and the rows of it that they moved aside.

    Records that plans sent stay in their topics.

    Raises:
        RefusedError: the file has one of these targets no more.
        PermanentError: the right to remove them is missing.
        TransientError: a target does not answer.
    """
    actions: ActionsOfKey = {plan.id: frozenset(plan.seqs) for plan in plans}
    places = [(plan, target) for plan in plans for target in plan.targets]
    for plan, target in places:
        _require_known(pipeline, connections, plan, target)
    rows, stays = 0, list[str]()
    for plan, target in places:
        point = pipeline.points[target]
        if not can_look_up(point):
            stays.append(f"records that plan {plan.id} sent to {target} stay in the topic")
            continue
        with Attempt(session, plan.id, holder=f"erasure of {plan.id}") as attempt:
            tables = tables_of(connections[point.connection])
            with tables.writer(point, f"erasing a key of plan {plan.id} at {point.table}") as writer:
                if writer.kept(plan.id, target) is None:
                    stays.append(f"{point.table} keeps what plan {plan.id} did for good: its system takes nothing back")
                else:
                    rows += writer.erase(target, attempt.epoch, plan.id, actions)
    return AtTargets(rows=rows, stays=tuple(stays))


def _require_known(pipeline: Pipeline, connections: Mapping[str, Connection], plan: PlanOfKey, target: str) -> None:
    point = pipeline.points.get(target)
    if point is None or point.connection not in connections:
        raise RefusedError(
            f"{target} is no point of {pipeline.name} any more, or its connection is not known, and plan {plan.id} "
            "wrote the key there: put it into the file again, and erase the key then. Nothing was erased"
        )


def hash_of_now(journal: PgConnection, pipeline: str, plan: PlanOfKey, payload_sha256: str | None) -> str:
    """Return the hash of a plan over its actions as the journal has them now."""
    digest = plan_hash(pipeline, plan.number, payload_sha256)
    for line in copied_lines(journal, plan.id):
        digest.update(line)
    return digest.hexdigest()
