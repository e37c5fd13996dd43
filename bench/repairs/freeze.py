"""Freeze plans of windows that were never judged."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compensation.freezing.write_plan import PlanFiles, PlanFrame, put_files
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.pipeline import Limits
from makewhole.model.plan import Plan
from makewhole.model.window import Window


def freeze(journal: str, items: Iterable[PlannedPayload], number: int, folder: Path) -> Plan:
    """Freeze a plan of window `number` that needs no approval. `journal`: the URI of the journal's database."""
    now = datetime.now(UTC)
    window = Window(pipeline="bench", number=number, revision=1, start=None, end=now, opened_at=now, ranges={})
    frame = PlanFrame(window=window, storage=str(folder), limits=Limits(records_per_second=10_000))
    with connect(journal) as connection, PlanFiles(frame.limits, items) as files:
        windows.insert(connection, window, request=f"round {number}", plan_only=False, configuration={})
        return put_files(connection, frame, files, needs_approval=False)
