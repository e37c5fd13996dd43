"""Read where a store says which of its keys were deleted on purpose."""

from yaml import ScalarNode

from makewhole.config import values
from makewhole.config.tree import Section
from makewhole.model.pipeline import Erased

_EXAMPLE = "Write 'erased: {table: privacy.erasures, key: flight_id}' or 'erased: {column: deleted_at}'"


def read_erased(point: Section, store_key: tuple[str, ...] | None) -> Erased | None:
    """Return what `erased` of a store says; what is wrong is noted. `store_key`: the store's own key columns."""
    place = point.get("erased")
    if place is None:
        return None
    if isinstance(place.node, ScalarNode) and place.node.value == "tombstones":
        place.complain(
            "'tombstones' is not a place where erased keys are named",
            "Under 'semantics: upsert' a tombstone deletes its key already: take the line out. " + _EXAMPLE,
        )
        return None
    section = place.section()
    if section is None:
        return None
    section.only("table", "key", "column")
    table, column, key = (section.get(name) for name in ("table", "column", "key"))
    if (table is None) == (column is None):
        place.complain("names both a table and a column" if table else "names neither a table nor a column", _EXAMPLE)
        return None
    if column is not None:
        name = column.text(values.column)
        if key is not None:
            key.complain("goes with 'table'", "Take the line out: the rows of the store have its own key")
        return None if name is None else Erased(column=name)
    assert table is not None
    named = table.text(values.table)
    columns = key.words(values.column) if key is not None else store_key
    if key is not None and columns and store_key and len(columns) != len(store_key):
        key.complain(
            f"has {len(columns)} parts, and the key of the store {len(store_key)}",
            "Name the columns of the table that hold the parts of the store's key, in the same order",
        )
    return None if named is None or not columns else Erased(table=named, key=tuple(columns))
