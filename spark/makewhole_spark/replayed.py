"""Hold a window up until every table that it reads has what was committed before an absence counts."""

from makewhole.model.errors import TransientError
from makewhole.model.points import can_look_up
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.opening.observe import settled_at


def require_replayed(journal: PgConnection, context: WindowContext) -> None:
    """Check that no connection leads to a standby that has not replayed what its primary had committed when the window
    was opened, and when the settle time was over.

    Raises:
        TransientError: one does.
    """
    window, pipeline = context.window, context.pipeline
    counts_from = max(window.opened_at, settled_at(journal, pipeline, window))
    tables = {point.connection: point for point in pipeline.ordered_points() if can_look_up(point)}
    for _, point in sorted(tables.items()):
        reason = context.tables(point).lags_behind(counts_from)
        if reason is not None:
            raise TransientError(f"{window.label}: {reason}")
