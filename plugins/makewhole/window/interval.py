"""Which window an interval is. Windows tile: an interval lies in one that exists, or behind the last one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.journal.windows import WindowBounds
from makewhole.model.errors import RefusedError


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for. `id`: the same for all tries of a DAG run. `start` None: from where the last window ended."""

    id: str
    end: datetime
    start: datetime | None = None
    plan_only: bool = False
    reason: str | None = None


def require_past(request: Request) -> None:
    """Refuse an interval that is not over, or has no length."""
    now = datetime.now(UTC)
    if request.end > now:
        raise RefusedError(
            f"the interval ends at {request.end.isoformat()}, which is in the future; a window can only be judged "
            "after its end. Choose an end before now"
        )
    if request.start is not None and request.start >= request.end:
        raise RefusedError(
            f"the interval starts at {request.start.isoformat()} and ends at {request.end.isoformat()}; "
            "the end must be later than the start"
        )


def find_covering_window(there: Sequence[WindowBounds], request: Request) -> WindowBounds | None:
    """The window that covers the asked interval; None when it reaches beyond the last one, so that a new one is due.

    Raises:
        RefusedError: the interval covers several windows, or pieces of some.
    """
    if not there or request.end > there[-1].end:
        return None
    for window in there:
        ends_inside = request.end <= window.end and (window.start is None or request.end > window.start)
        starts_inside = request.start is None or window.start is None or request.start >= window.start
        if ends_inside and starts_inside:
            return window
    listed = "; ".join(f"{item.number}: {interval_text(item)}" for item in there[-10:])
    raise RefusedError(
        f"the interval {moment_text(request.start)} to {moment_text(request.end)} lies across windows that exist already; ask for "
        f"one of them ({listed}), or for an end after {moment_text(there[-1].end)}"
    )


def interval_text(window: WindowBounds) -> str:
    """Its interval, for messages."""
    return f"{moment_text(window.start)} to {moment_text(window.end)}"


def moment_text(moment: datetime | None) -> str:
    """A moment for messages."""
    return "the beginning" if moment is None else moment.isoformat()
