"""Keep what was removed because it was kept as long as the pipeline's file says: decided before anything goes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from makewhole.model.errors import RefusedError
from makewhole.model.retention import Kept
from makewhole.sql import PgConnection, records, single_value, statements_of

_run = statements_of("removal")

FORGOTTEN = "(removed)"
"""Stands in a finding in the place of its key."""

_WHAT = {
    Kept.ARCHIVES: "its records as they were in the log",
    Kept.ATTEMPTS: "files of attempts that died",
    Kept.FINDINGS: "keys and evidence of its findings",
    Kept.QUARANTINE: "the rows that it moved aside",
    Kept.EFFECTS: "its effects",
}


@dataclass(frozen=True, kw_only=True)
class Removal:
    """What was removed of the revisions of a window up to one, or of a plan. `kept`: for how long it was kept, as the
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
        """What was kept, for how long, and when it was removed."""
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
class RemovableWindow:
    """A window of which something can go: all of its revisions up to this one."""

    number: int
    revision: int


@dataclass(frozen=True, kw_only=True)
class EndedPlan:
    """A plan of which nothing more is asked, with the targets that have receipts of it."""

    id: str
    number: int
    revision: int
    payload_uri: str | None
    targets: tuple[str, ...]


def removable_windows(journal: PgConnection, pipeline: str, kind: Kept, kept: timedelta) -> list[RemovableWindow]:
    """Return the windows of which this can go, oldest first: certified, over for longer than it is kept, with nothing
    that waits for them."""
    rows = _run(journal, "windows_with_archives", pipeline=pipeline, kind=kind.value, kept=kept)
    return records(RemovableWindow, rows)


def ended_plans(journal: PgConnection, pipeline: str, kind: Kept, kept: timedelta) -> list[EndedPlan]:
    """Return the plans of which this can go, oldest first."""
    return records(EndedPlan, _run(journal, "ended_plans", pipeline=pipeline, kind=kind.value, kept=kept))


def decide_of_window(journal: PgConnection, pipeline: str, window: RemovableWindow, kind: Kept, kept: str) -> datetime:
    """Decide to remove something of a window; decided before, it stays as it was. Returns when it was decided."""
    moment: datetime = single_value(
        _run(journal, "decide_of_window", pipeline=pipeline, kind=kind.value, kept=kept, **asdict(window))
    )
    return moment


def done_of_window(journal: PgConnection, pipeline: str, window: RemovableWindow, kind: Kept, removed: Amount) -> None:
    """Note that all of it is gone."""
    amount = json.dumps(asdict(removed))
    _run(journal, "done_of_window", pipeline=pipeline, kind=kind.value, removed=amount, **asdict(window))


def decide_of_plan(journal: PgConnection, plan: str, kind: Kept, kept: str) -> bool:
    """Decide to remove something of a plan, which the caller has locked. False: an undo of it waits or runs."""
    return bool(_run(journal, "decide_of_plan", plan=plan, kind=kind.value, kept=kept))


def done_of_plan(journal: PgConnection, plan: str, kind: Kept, removed: Amount) -> None:
    """Note that all of it is gone."""
    _run(journal, "done_of_plan", plan=plan, kind=kind.value, removed=json.dumps(asdict(removed)))


def of_plan(journal: PgConnection, plan: str) -> list[Removal]:
    """Return what was removed of a plan, or is being removed."""
    return records(Removal, _run(journal, "removals_of_plan", plan=plan))


def of_window(journal: PgConnection, pipeline: str, number: int) -> list[Removal]:
    """Return what was removed of a window, or is being removed, the newest revision first."""
    return records(Removal, _run(journal, "removals_of_window", pipeline=pipeline, number=number))


def require_undoable(journal: PgConnection, plan: str) -> None:
    """Refuse to undo a plan of which something is gone that its undo needs.

    Raises:
        RefusedError: it is.
    """
    for removal in of_plan(journal, plan):
        raise RefusedError(f"undo of plan {plan} is no longer possible: {removal.sentence}")


def named_texts(journal: PgConnection, pipeline: str, number: int) -> Iterator[object]:
    """Yield the documents (JSON) in which the files of a window are named."""
    for (text,) in _run(journal, "texts_of_window", pipeline=pipeline, number=number):
        yield json.loads(text)


def count_findings(journal: PgConnection, pipeline: str, window: RemovableWindow) -> int:
    """Return how many findings of a window would lose their keys and evidence."""
    return int(single_value(_run(journal, "count_findings", pipeline=pipeline, marker=FORGOTTEN, **asdict(window))))


def forget_findings(journal: PgConnection, pipeline: str, window: RemovableWindow, because: str) -> int:
    """Remove the keys and the evidence of the findings of a window; what disputes a value keeps them. Returns how many
    there were."""
    count = count_findings(journal, pipeline, window)
    values: Mapping[str, object] = {"pipeline": pipeline, "marker": FORGOTTEN, "because": because, **asdict(window)}
    _run(journal, "forget_findings", **values)
    return count
