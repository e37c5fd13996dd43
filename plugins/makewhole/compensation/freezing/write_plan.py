"""Write a plan: its payload file, then plan and actions in the journal, with the approval where none is needed."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count

from makewhole.compensation.freezing.batches.action_file import ActionFile
from makewhole.compensation.freezing.batches.payload_chunks import PayloadChunks
from makewhole.compensation.freezing.chunks import PlannedPayload, actions_per_chunk, number_actions
from makewhole.compensation.freezing.payload_file import write_payload_tables
from makewhole.compensation.freezing.plan_hash import plan_hash
from makewhole.file_system import path_below
from makewhole.journal import plans
from makewhole.model.actions import Action
from makewhole.model.closing import ClosingContext
from makewhole.model.pipeline import Limits
from makewhole.model.plan import Plan, PlanState
from makewhole.model.window import Window
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class PlanFrame:
    """The window, storage and limits of a plan. `storage`: the root for its payload file (a path or a URI);
    `undoes`: the plan that it takes back."""

    window: Window
    storage: str
    limits: Limits
    undoes: str | None = None


class PlanFiles(ClosingContext):
    """The numbered actions of a plan and their payloads, in files of this machine. Close it after use."""

    def __init__(self, limits: Limits, items: Iterable[PlannedPayload]) -> None:
        """Take all items in their order, one at a time."""
        with ExitStack() as stack:
            self.actions = stack.enter_context(ActionFile())
            self._payloads = stack.enter_context(PayloadChunks())
            for action, payload in number_actions(items, actions_per_chunk(limits)):
                self.actions.add(action)
                self._payloads.add(action, payload)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Delete the files."""
        self._stack.close()

    def write_payloads(self, prefix: str) -> tuple[str, str]:
        """Write the payload file; return its URI and SHA-256."""
        return write_payload_tables(prefix, self._payloads.tables())


def put_files(journal: PgConnection, frame: PlanFrame, files: PlanFiles, *, needs_approval: bool) -> Plan:
    """Hash and store what the files of a plan hold, in the caller's transaction."""
    uri, sha256 = files.write_payloads(path_below(frame.storage, f"{frame.window.prefix}/plan/payloads"))
    state = PlanState.AWAITING_APPROVAL if needs_approval else PlanState.FROZEN
    plan = replace(_plan(journal, frame, files.actions, sha256), payload_uri=uri, state=state)
    plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=sha256), files.actions.lines())
    if not needs_approval:
        plans.put_approval(journal, plan, decision="not_needed", by=None, at=datetime.now(UTC), expires=None, seen={})
    return plan


def put_refused(
    journal: PgConnection, frame: PlanFrame, actions: Iterable[Action], reason: str
) -> tuple[Plan, tuple[Action, ...]]:
    """Store a plan that never runs, without payloads, with the reason. Returns the plan, and the first of its
    actions."""
    with ActionFile() as file:
        for action in _numbered(actions):
            file.add(action)
        plan = replace(_plan(journal, frame, file, None), reason=reason)
        plans.put_plan(journal, plans.StoredPlan(plan=plan, payload_sha256=None), file.lines())
        return plan, tuple(file.first)


def _numbered(actions: Iterable[Action]) -> Iterator[Action]:
    return (replace(action, seq=seq) for seq, action in enumerate(actions))


def _plan(journal: PgConnection, frame: PlanFrame, actions: ActionFile, payload_sha256: str | None) -> Plan:
    """Make a plan with an unused id: the same content, planned again, is another plan."""
    window = frame.window
    digest = plan_hash(window.pipeline, window.number, payload_sha256)
    for block in actions.blocks():
        digest.update(block)
    sha256 = digest.hexdigest()
    content = f"{window.pipeline}-{window.number}-{sha256[:12]}"
    names = chain([content, f"{content}-r{window.revision}"], (f"{content}-r{window.revision}-{n}" for n in count(2)))
    return Plan(
        id=next(name for name in names if plans.find_plan(journal, name) is None),
        pipeline=window.pipeline,
        window=window.number,
        revision=window.revision,
        sha256=sha256,
        payload_uri=None,
        counts=actions.remedies,
        state=PlanState.REFUSED,
        undoes=frame.undoes,
    )
