"""Keep what was removed because it was kept as long as the pipeline's file says: decided before anything goes."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from makewhole.journal.retention import erasures
from makewhole.journal.retention.removable import RemovableWindow
from makewhole.model.errors import RefusedError
from makewhole.model.retention import Kept
from makewhole.sql import PgConnection, record, records, statements_of

_run = statements_of("removal")

_WHAT = {
    Kept.ARCHIVES: "its records as they were in the log",
    Kept.ATTEMPTS: "files of attempts that died",
    Kept.FINDINGS: "keys and evidence of its findings",
    Kept.QUARANTINE: "the rows that it moved aside",
    Kept.EFFECTS: "its effects",
}


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Removal from the revisions of a window up to one, or of a plan. `kept`: for how long it was kept, as the
    file has it. `removed_at` None: not all of it is gone yet."""

    kind: Kept
    number: int
    revision: int
    plan: str | None
    kept: str
    decided_at: datetime
    removed_at: datetime | None

    @property
    def sentence(self) -> str:
        """Describe what was kept, for how long, and when it was removed."""
        return f"{_WHAT[self.kind]} were kept {self.kept}, and removed at {self.decided_at:%Y-%m-%d %H:%M UTC}"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How much was removed, or would be."""

    files: int = 0
    size_bytes: int = 0
    rows: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            files=self.files + other.files,
            size_bytes=self.size_bytes + other.size_bytes,
            rows=self.rows + other.rows,
        )


NOTHING = Amount()


@dataclass(frozen=True, kw_only=True)
class RemovalDecision:
    """When it was decided to remove something, and for how long it was kept then."""

    decided_at: datetime
    kept: str

    @property
    def sentence(self) -> str:
        """Describe both."""
        return f"kept {self.kept}, and removed at {self.decided_at.astimezone(UTC):%Y-%m-%d %H:%M UTC}"


def decide_of_window(
    journal: PgConnection, pipeline: str, window: RemovableWindow, kind: Kept, kept: str, there: Amount
) -> RemovalDecision:
    """Decide to remove something of a window, of which so much is there; decided before, it stays as it was."""
    values = {"pipeline": pipeline, "kind": kind.value, "kept": kept, "removed": _document(there), **asdict(window)}
    [row] = _run(journal, "decide_of_window", **values)
    return record(RemovalDecision, row)


def done_of_window(journal: PgConnection, pipeline: str, window: RemovableWindow, kind: Kept) -> None:
    """Note that all of it is gone."""
    _run(journal, "done_of_window", pipeline=pipeline, kind=kind.value, **asdict(window))


def decide_of_plan(journal: PgConnection, plan: str, kind: Kept, kept: str, there: Amount) -> bool:
    """Decide to remove something of a plan, which the caller has locked, of which so much is there. False: an undo of
    it waits or runs."""
    return bool(_run(journal, "decide_of_plan", plan=plan, kind=kind.value, kept=kept, removed=_document(there)))


def done_of_plan(journal: PgConnection, plan: str, kind: Kept) -> None:
    """Note that all of it is gone."""
    _run(journal, "done_of_plan", plan=plan, kind=kind.value)


def _document(amount: Amount) -> str:
    return json.dumps(asdict(amount))


def of_plan(journal: PgConnection, plan: str) -> list[Removal]:
    """Return what was removed of a plan, or is being removed."""
    return records(Removal, _run(journal, "removals_of_plan", plan=plan))


def of_window(journal: PgConnection, pipeline: str, number: int) -> list[Removal]:
    """Return what was removed of a window, or is being removed, the newest revision first."""
    return records(Removal, _run(journal, "removals_of_window", pipeline=pipeline, number=number))


def archives_removed_to(journal: PgConnection, pipeline: str, number: int) -> int:
    """Return the last revision of a window whose archives were removed, or are being removed; 0: none was."""
    removed = (removal.revision for removal in of_window(journal, pipeline, number) if removal.kind is Kept.ARCHIVES)
    return max(removed, default=0)


def require_undoable(journal: PgConnection, plan: str) -> None:
    """Refuse to undo a plan of which something is gone that its undo needs, by its age or on request.

    Raises:
        RefusedError: it is.
    """
    for removal in of_plan(journal, plan):
        raise RefusedError(f"undo of plan {plan} is no longer possible: {removal.sentence}")
    erasures.require_whole(journal, plan)
