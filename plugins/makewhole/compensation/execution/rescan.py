"""Count the chunks of a plan in a topic whose marker is lost, record by record."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from makewhole.compensation.execution.targets import Chunk, PlanAtTarget
from makewhole.kafka.offsets import describe_topic
from makewhole.kafka.replayed_chunks import replayed_records
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import CorruptionError
from makewhole.model.positions import RecordPositions

RecordsSeen = dict[int, NDArray[np.bool_]]
"""By chunk, for each of its actions: is its record in the topic."""


def chunks_in_topic(connection: KafkaConnection, topic: str, plan: PlanAtTarget) -> int:
    """Return the number of chunks that happened, from 0 on. Every earlier producer of the plan must be fenced.

    A record counts when it stands, committed, where the plan's own producer had it before the commit, by the journal,
    and holds what the plan froze for it: anybody can write or repeat such headers. Of plans that keep no positions it
    counts when it holds that in any committed transaction.
    A chunk is one transaction, so that it is in the topic whole or not at all.

    Raises:
        CorruptionError: a chunk is there in part or out of order, or the log does not reach back far enough.
        TransientError: the topic cannot be read to its end now.
    """
    topic_id = describe_topic(connection, topic).topic_id
    records = _records_seen(replayed_records(connection, topic, plan.plan.id, plan.log_ends), plan, topic_id)
    refused_whole = plan.chunks_refused_whole()
    present = {number for number, actions in records.items() if _is_present(topic, plan.chunk(number), actions)}
    done = next((n for n in range(plan.chunks) if n not in present and n not in refused_whole), plan.chunks)
    if present and max(present) >= done:
        raise CorruptionError(
            f"{topic} holds chunk {max(present)} of plan {plan.plan.id} and not chunk {done}; nothing more is written. "
            "Open a new revision of the window, which looks at what is really there"
        )
    return done


def _records_seen(records: Iterable[pa.RecordBatch], plan: PlanAtTarget, topic_id: str) -> RecordsSeen:
    seen: RecordsSeen = {}
    opened: tuple[Chunk, RecordPositions] | None = None
    for batch in records:
        numbers: list[int] = np.unique(batch.column("chunk").to_numpy()).tolist()
        for number in numbers:
            if number >= plan.chunks:
                continue
            if opened is None or opened[0].number != number:
                opened = plan.chunk(number), plan.positions(number, topic_id)
            chunk, positions = opened
            actions = seen.setdefault(number, np.zeros(len(chunk.rows), dtype=np.bool_))
            of_chunk = batch.filter(pc.equal(batch.column("chunk"), pa.scalar(number, pa.int32())))
            actions[_matching_rows(chunk.columns, _at_positions(of_chunk, positions))] = True
    return seen


def _at_positions(records: pa.RecordBatch, positions: RecordPositions) -> pa.RecordBatch:
    """Select the records that stand where the journal has those of their actions."""
    known = set(zip(positions.seqs, positions.partitions, positions.offsets, strict=True))
    named = zip(*(records.column(name).to_pylist() for name in ("seq", "partition", "offset")), strict=True)
    return records.filter(pa.array([name in known for name in named], pa.bool_()))


def _matching_rows(frozen: pa.Table, records: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the rows of `frozen` (ordered by `seq`) whose key and value are in `records` under the same number."""
    frozen_seqs, seqs = frozen.column("seq").to_numpy(), records.column("seq").to_numpy()
    rows: NDArray[np.int64] = np.minimum(np.searchsorted(frozen_seqs, seqs), len(frozen_seqs) - 1)
    is_same: NDArray[np.bool_] = frozen_seqs[rows] == seqs
    for name in ("key", "value"):
        is_same &= _are_equal(frozen.column(name).take(rows).combine_chunks(), records.column(name))
    return rows[is_same]


def _are_equal(ones: Any, others: Any) -> NDArray[np.bool_]:
    """Compare two columns row by row; nulls are equal to each other."""
    either: Any = pc.or_kleene(pc.equal(ones, others), pc.and_(ones.is_null(), others.is_null()))
    are_equal: NDArray[np.bool_] = either.fill_null(False).to_numpy(zero_copy_only=False)
    return are_equal


def _is_present(topic: str, chunk: Chunk, seen: NDArray[np.bool_]) -> bool:
    seqs = chunk.columns.column("seq").to_numpy()
    wanted = ~np.isin(seqs, list(chunk.refused))
    if not seen.any():
        return False
    if (wanted & ~seen).any():
        raise CorruptionError(
            f"{topic} holds {int(seen.sum())} of the {int(wanted.sum())} records of chunk {chunk.number}, and a chunk "
            "is one transaction: compaction took some, or they are forged. Nothing more is written; open a new "
            "revision of the window, which looks at what is really there"
        )
    return True
