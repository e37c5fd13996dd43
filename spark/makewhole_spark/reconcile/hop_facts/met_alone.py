"""Find the keys of which the windows before met rows in a table without a record: a later window has the record, and
sees only the rows of its own times."""

from collections.abc import Mapping

from makewhole.journal import window_results
from makewhole.model.pipeline import Hop
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


def met_alone(neighbours: NeighbouringWindows, hop: Hop) -> Mapping[str, tuple[str, ...]] | None:
    """Return the files of such keys by bucket, of the windows whose rows a record of this window may belong to; None
    where one of these windows is not judged, or does not say it, so that nobody knows what it met.

    A row comes before its record by no more than `late` and the time that a key may wait.
    """
    context, earlier = neighbours.context, neighbours.earlier
    start = context.window.start
    if start is None:
        return {}  # the window has the rows of all times
    from_when = start - context.pipeline.late - context.pipeline.pending_max_age
    meant = [*(window for window in earlier[:-1] if window.end > from_when), *earlier[-1:]]
    if not meant or meant[-1].number != context.window.number - 1:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for window in meant:
        result = window_results.results(neighbours.journal, window).get(hop.name)
        if result is None or "met_alone" not in result.files:
            return None
        for bucket, path in result.files["met_alone"].items():
            found[bucket] = (*found.get(bucket, ()), path)
    return found
