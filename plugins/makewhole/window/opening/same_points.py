"""Hold the points of a file to what the windows that were compared knew of them: by their names, their keys and their
places, keys handed over and those of the key index are found again.

A point is held to the newest of these windows that had it: what is kept of it is from then, however long the file did
without it. A point that no window had is held to nothing.
"""

from makewhole.compute.key_layout import KeyLayout, require_same_keys, require_same_spelling
from makewhole.compute.same_key import from_document, key_fields, require_same_key
from makewhole.compute.same_place import (
    Identities,
    require_no_circle,
    require_one_key,
    require_one_log,
    require_reversed_once,
    require_same_names,
    with_identities,
)
from makewhole.journal import windows
from makewhole.journal.history import known_points
from makewhole.journal.results import handover_keys
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.tables.columns import ColumnsRead


def require_known_keys(journal: PgConnection, pipeline: Pipeline, columns: ColumnsRead, layout: KeyLayout) -> None:
    """Refuse to read keys from other fields, or to encode them in another way, than the windows that were compared.

    Raises:
        RefusedError: what is kept from before would not be found again.
    """
    window = windows.last_judged(journal, pipeline.name)
    if window is None:
        return
    former = known_points.newest_keys(journal, pipeline.name, _new_in(pipeline, window))
    kinds = {point.name: tuple(KeyType(kind) for kind in point.key_layout) for point in former}
    require_same_spelling(pipeline, columns.types, {**kinds, **window.key_layout}, layout)
    fields = {point.name: point.key_fields for point in former} | windows.configuration(journal, window)["key_fields"]
    require_same_key(pipeline, from_document(fields), key_fields(pipeline, columns.ids))
    if dict(window.key_layout) != dict(layout):
        sources = {hop.name: hop.source for hop in pipeline.hops}
        waiting = handover_keys.handovers(journal, pipeline.name, window.number)
        keys = ((sources[row.hop], row.key) for piece in waiting for row in piece if row.hop in sources)
        require_same_keys(pipeline, layout, keys)


def require_known_names(journal: PgConnection, pipeline: Pipeline, places: Identities) -> None:
    """Refuse points that the windows before knew under other names, and points of one place that make no sense.

    Raises:
        RefusedError: what is kept from before would not be found again, or rows of one point would count at another.
    """
    known = with_identities(pipeline, places)
    require_no_circle(known)
    require_one_key(known)
    require_one_log(known)
    require_reversed_once(known)
    window = windows.last_judged(journal, pipeline.name)
    if window is not None:
        new = {name: place for name, place in places.items() if name not in window.places}
        former = known_points.names_of_places(journal, pipeline.name, sorted({*new.values()}))
        require_same_names(pipeline, {**former, **window.places}, places)


def _new_in(pipeline: Pipeline, window: Window) -> list[str]:
    """Return the points that a window did not have."""
    return sorted(name for name in pipeline.points if name not in window.key_layout)
