"""Account for every column of a row that `upsert` writes: nothing in it is filled, or left empty, implicitly."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from makewhole.model.hops import Hop
from makewhole.model.points import Point, TablePoint, has_log
from makewhole.tables.description import Column, TableDescription
from makewhole.tables.version_types import declared_version


class ColumnOrigin(StrEnum):
    """Where a column of a new row gets its value from."""

    KEY = "key"
    COMPARED = "compare"
    VERSION = "version"
    WRITTEN = "write"
    MOMENT = "the moment of the write"
    OWN = "the table's own"
    LEFT = "leave"


@dataclass(frozen=True, kw_only=True)
class NewRow:
    """The columns of a hop's table, in its order: where each comes from (None: nothing says), and the declared types of
    those that hold values of the record. `topic`: that of the hop where the rows say theirs. `without_topic`: the
    column that would have to hold it, and would not."""

    origins: Mapping[str, ColumnOrigin | None]
    declared: Mapping[str, str]
    topic: str | None = None
    without_topic: str | None = None

    @property
    def moment(self) -> str | None:
        """The column that gets the moment of the write; None: there is none."""
        return next((name for name, origin in self.origins.items() if origin is ColumnOrigin.MOMENT), None)

    @property
    def unaccounted(self) -> tuple[str, ...]:
        """The columns of which nothing says what they hold."""
        return tuple(name for name, origin in self.origins.items() if origin is None)

    @property
    def left(self) -> tuple[str, ...]:
        """The columns that stay empty on purpose."""
        return tuple(name for name, origin in self.origins.items() if origin is ColumnOrigin.LEFT)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns that are written, the key among them."""
        not_written = (None, ColumnOrigin.OWN, ColumnOrigin.LEFT)
        return tuple(name for name, origin in self.origins.items() if origin not in not_written)


def new_row(table: TableDescription, hop: Hop, source: Point, target: TablePoint, compare: Mapping[str, str]) -> NewRow:
    """Account for the columns of the table that a hop leads into; `compare` as in the pipeline."""
    declared = dict(compare)
    if target.version is not None and source.version is not None:
        declared.setdefault(target.version, version_type(table, target.version))
    declared |= {name: kind for name, kind in hop.write.items() if name not in declared}
    origins = {name: _origin(column, hop, target, compare, declared) for name, column in table.columns.items()}
    new = NewRow(origins=origins, declared=declared)
    dataset = target.dataset
    if dataset is None or dataset.topic is None or not dataset.of_topics or not has_log(source):
        return new
    name = target.column_name(target.column_place(dataset.topic))
    column = table.columns.get(name)
    is_filled = column is not None and column.has_default
    is_empty = origins.get(name) in (None, ColumnOrigin.LEFT) and not is_filled
    return replace(new, topic=source.topic, without_topic=name if is_empty else None)


def _origin(
    column: Column, hop: Hop, target: TablePoint, compare: Mapping[str, str], declared: Mapping[str, str]
) -> ColumnOrigin | None:
    name = column.name
    if column.is_generated:
        return ColumnOrigin.OWN
    if name in target.key:
        return ColumnOrigin.KEY
    if name in compare:
        return ColumnOrigin.COMPARED
    if name in declared:
        return ColumnOrigin.WRITTEN if name in hop.write else ColumnOrigin.VERSION
    erased = target.erased.column if target.erased else None
    if name in hop.leave or name == erased:  # what is written is live
        return ColumnOrigin.LEFT
    if column.has_default:
        return ColumnOrigin.OWN
    return ColumnOrigin.MOMENT if name == target.time else None


def version_type(table: TableDescription, name: str) -> str:
    """Return the declared type that reads every version in a column of a table."""
    column = table.columns.get(name)
    return declared_version("" if column is None else column.base_type)
