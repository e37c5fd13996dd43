"""Find the window that covers an interval. Windows tile: it lies in an existing one or reaches beyond the last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.journal.windows import WindowBounds
from makewhole.model.errors import RequestRefusedError


@dataclass(frozen=True, kw_only=True)
class Request:
    """An interval to judge. `id`: the same for all tries of a DAG run. `start` None: where the last window ended.
    `read_again`: of a window that is judged again every point is read, also one that is shown to be the same.
    `asked_by`: who started the run, as Airflow knows them; None: no person, by its schedule."""

    id: str
    end: datetime
    start: datetime | None = None
    plan_only: bool = False
    read_again: bool = False
    reason: str | None = None
    asked_by: str | None = None


def require_past(request: Request) -> None:
    """Refuse an interval that is not over, or has no length.

    Raises:
        RequestRefusedError: it ends in the future, or not after its start.
    """
    now = datetime.now(UTC)
    if request.end > now:
        raise RequestRefusedError(
            f"the interval ends at {request.end.isoformat()}, which is in the future; a window can only be judged "
            "after its end. Choose an end before now"
        )
    if request.start is not None and request.start >= request.end:
        raise RequestRefusedError(
            f"the interval starts at {request.start.isoformat()} and ends at {request.end.isoformat()}; "
            "the end must be later than the start"
        )


def find_covering_window(existing: Sequence[WindowBounds], request: Request) -> WindowBounds | None:
    """Return the window that covers the requested interval; None: it ends after the last one, and a new one is due.

    Raises:
        RequestRefusedError: the interval covers several windows, or pieces of some.
    """
    if not existing or request.end > existing[-1].end:
        return None
    for window in existing:
        ends_inside = request.end <= window.end and (window.start is None or request.end > window.start)
        starts_inside = request.start is None or window.start is None or request.start >= window.start
        if ends_inside and starts_inside:
            return window
    listed = "; ".join(f"{item.number}: {interval_text(item)}" for item in existing[-10:])
    raise RequestRefusedError(
        f"the interval {moment_text(request.start)} to {moment_text(request.end)} lies across windows that exist "
        f"already; ask for one of them ({listed}), or for an end after {moment_text(existing[-1].end)}"
    )


def interval_text(window: WindowBounds) -> str:
    """Return the interval of a window for messages."""
    return f"{moment_text(window.start)} to {moment_text(window.end)}"


def moment_text(moment: datetime | None) -> str:
    """Return a moment for messages."""
    return "the beginning" if moment is None else moment.isoformat()
