"""Report what people should know before keys are written that no certified window saw where they are missing."""

from collections.abc import Mapping

from makewhole.journal import plan_progress
from makewhole.model.points import Point, can_look_up
from makewhole.model.text import counted
from makewhole.sql import PgConnection


def never_seen(journal: PgConnection, plan_id: str, points: Mapping[str, Point]) -> tuple[str, ...]:
    """Return a sentence for each store to which a plan would bring such keys and that does not name erased keys.
    `points`: those that are known by now."""
    sentences = []
    for store, keys in sorted(plan_progress.missing_keys_by_store(journal, plan_id).items()):
        point = points.get(store)
        if not (can_look_up(point) and point.erased is not None):
            were = "was" if keys == 1 else "were"
            sentences.append(
                f"{counted(keys, 'key')} {were} never seen in {store} by a certified window; if erased on purpose, "
                f"writing brings back what was deleted: then name 'erased:' of {store} in the pipeline file first"
            )
    return tuple(sentences)
