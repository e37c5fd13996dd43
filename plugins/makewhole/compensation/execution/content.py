"""Load the content of a plan, checked against its hash: actions as columns, payloads chunk by chunk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.targets import Chunk, Target, require_same_places
from makewhole.compensation.freezing.chunks import ChunkRows, chunks_of, take_chunk
from makewhole.compensation.freezing.payload_file import PayloadFile, verified_copy
from makewhole.compensation.freezing.plan_hash import unchanged_actions
from makewhole.journal import plans
from makewhole.journal.actions import ArrowColumn
from makewhole.journal.plan_progress import ChunkActions
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import CorruptionError
from makewhole.model.plan import Plan

_CHECK_SECONDS_MOST = 900.0


@dataclass(frozen=True, kw_only=True)
class PlanContent:
    """A plan whose whole content was checked. `chunks` by target, in the order in which they are done."""

    plan: Plan
    actions: pa.Table
    chunks: Mapping[str, Sequence[ChunkRows]]
    payloads: PayloadFile

    def close(self) -> None:
        """Delete the copy of the payloads."""
        self.payloads.close()

    def chunk(self, target: str, number: int) -> Chunk:
        """Return a chunk with its payloads."""
        part = self.chunks[target][number]
        rows = take_chunk(self.actions, part)
        return Chunk(number=number, rows=rows, columns=self.payloads.chunk(part.group, rows.column("seq")))

    def keys_at(self, target: str) -> ArrowColumn:
        """Return the business keys of all actions at a target, as a column."""
        at_targets = self.actions.select(["target", "key"])  # a filter copies every column
        return at_targets.filter(pc.field("target").cast(pa.string()) == target).column("key")

    def chunk_actions(self, target: str, number: int) -> ChunkActions:
        """Return where the journal holds the actions of a chunk."""
        rows = self.chunks[target][number].rows
        seqs = self.actions.column("seq")
        first, last = (int(seqs[int(row)].as_py()) for row in (rows[0], rows[-1]))
        return ChunkActions(plan=self.plan.id, target=target, chunk=number, first=first, last=last)


def load_content(stored: StoredPlan, actions: pa.Table, while_copying: Callable[[], None]) -> PlanContent:
    """Combine the plan's actions, which were checked, with its payload file, which is checked now.

    Raises:
        CorruptionError: the payload file is not what was frozen.
        TransientError: the storage is away.
    """
    plan = stored.plan
    if plan.payload_uri is None or stored.payload_sha256 is None:
        raise CorruptionError(f"plan {plan.id} has no payload file; open a new revision of the window")
    chunks = chunks_of(actions)
    file = verified_copy(plan.payload_uri, stored.payload_sha256, while_copying)
    if file.rows != len(actions):
        file.close()
        raise CorruptionError(
            f"the payload file of plan {plan.id} has {file.rows} rows for {len(actions)} actions; "
            "open a new revision of the window"
        )
    return PlanContent(plan=plan, actions=actions, chunks=chunks, payloads=file)


def load_checked(attempt: Attempt, targets: Mapping[str, Target]) -> tuple[StoredPlan, PlanContent]:
    """Load what was frozen and compare all of it with the plan's hash: what was checked is what is used.

    Nothing is locked meanwhile, so that a process that is stopped here blocks no other one.

    Raises:
        RefusedError: the actions were changed in the journal, or a target is not what it was.
        CorruptionError: the payload file was changed.
    """
    with attempt.journal.transaction(idle_seconds=_CHECK_SECONDS_MOST) as journal:
        stored = plans.get_plan(journal, attempt.plan_id)
        actions = unchanged_actions(journal, stored.plan, stored.payload_sha256)
    require_same_places(actions, targets)
    return stored, load_content(stored, actions, attempt.renew)
