"""Choose the number of buckets of a window by its size: by the offsets of its topics, and estimates of its tables."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from makewhole.compute.buckets import number_of_buckets
from makewhole.journal.results import snapshot_manifests
from makewhole.model.errors import PermanentError
from makewhole.model.hops import Semantics
from makewhole.model.points import PointKind, TablePoint, can_look_up
from makewhole.sql import PgConnection
from makewhole.tables.shape import TimeBounds
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)
BUCKETS = "buckets"
"""The entry of a manifest that says how many buckets the files are of."""


def bucket_count(journal: PgConnection, context: WindowContext, manifests: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the number of buckets in which a window is read: that of its snapshots which exist (`manifests`), of an
    earlier revision, or by the largest of its points."""
    before = () if manifests else snapshot_manifests.fullest_snapshots(journal, context.window).values()
    known = [manifest[BUCKETS] for manifest in (*manifests.values(), *before) if BUCKETS in manifest]
    return min(known) if known else number_of_buckets(max(_rows_by_point(context), default=0))


def _rows_by_point(context: WindowContext) -> Iterator[int]:
    """Yield about how many rows the points have in the window; nothing of tables that are read by keys."""
    yield from (sum(part.span for part in parts) for parts in context.window.ranges.values())
    for point in context.pipeline.ordered_points():
        if can_look_up(point) and _is_read_by_times(context, point):
            yield _rows_of_table(context, point)


def _is_read_by_times(context: WindowContext, point: TablePoint) -> bool:
    if point.kind is PointKind.LEDGER:
        return True
    into = [hop for hop in context.pipeline.hops if hop.target == point.name]
    return point.time is not None and not any(hop.semantics is Semantics.UPSERT for hop in into)


def _rows_of_table(context: WindowContext, point: TablePoint) -> int:
    """Return about how many rows a table has in the window; 0 where it cannot be asked: reading it will say why.

    Raises:
        TransientError: the server does not answer now.
    """
    bounds = None if point.time is None else TimeBounds(start=context.window.start, end=context.window.end)
    try:
        return context.tables(point).estimate_rows(point, bounds)
    except PermanentError as error:
        logger.warning("the size of %s is not known: %s", point.name, error)
        return 0
