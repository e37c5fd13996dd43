"""Read `columns` of a point: which column of its table, or place in its records, the names of the file stand for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from yaml import MappingNode

from makewhole.config import values
from makewhole.config.hops.where import parse_where
from makewhole.config.places.place_units import UnitsDraft
from makewhole.config.places.record_places import cannot_be_built
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.places.record_paths import written_path
from makewhole.model.points import ColumnPlaces, TablePoint, can_look_up, has_log


@dataclass(frozen=True, kw_only=True)
class ColumnsDraft:
    """The columns of a point as far as they could be read: name → column or place, and where each stands; and the units
    of a topic's places."""

    places: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, YamlPlace] = field(default_factory=dict)
    units: UnitsDraft = field(default_factory=UnitsDraft)

    def of_table(self) -> ColumnPlaces:
        """Return the columns that have another name than in the table."""
        return tuple((name, column) for name, column in self.places.items() if name != column)

    def of_topic(self) -> ColumnPlaces:
        """Return the columns that are no fields of their own name."""
        return tuple((name, place) for name, place in self.places.items() if place != f"${written_path((name,))}")


def read_columns(section: Section, *, of_table: bool) -> ColumnsDraft:
    """Return what a point says of its columns; what is wrong is noted."""
    place = section.get("columns")
    places: dict[str, str] = {}
    lines: dict[str, YamlPlace] = {}
    units = UnitsDraft()
    for name, line in (place.section() if place else None) or ():
        try:
            values.logical_name(name)
        except values.UnfitError as unfit:
            line.complain(unfit.found, unfit.remedy)
        column_place = _column_of_table(line) if of_table else units.read(line, values.topic_part)
        if column_place is not None:
            places[name], lines[name] = column_place, line
    if of_table:
        _note_named_twice(places, lines)
    return ColumnsDraft(places=places, lines=lines, units=units)


def _column_of_table(line: YamlPlace) -> str | None:
    if isinstance(line.node, MappingNode):
        line.complain("is a mapping, and a column of a table has its own type", "Name the column")
        return None
    return line.text(values.column)


def _note_named_twice(places: Mapping[str, str], lines: Mapping[str, YamlPlace]) -> None:
    """Note a column that has two names: nothing would say which of them is written."""
    first: dict[str, str] = {}
    for name, column in places.items():
        other = first.setdefault(column, name)
        if other != name:
            lines[name].complain(f"is the column {values.shown(column)}, as {other!r} is", "Name each column once")


def named_as_in_file(point: TablePoint, columns: ColumnsDraft) -> TablePoint:
    """Return a point that was read with the columns of its table, with its key, its time and all others by the names
    that the file has for them. A name that would be two columns is noted."""
    for name in sorted(point.named_columns & columns.places.keys()):
        if columns.places[name] != name:
            columns.lines[name].complain(
                f"is the column {values.shown(columns.places[name])}, and this point has another one of that name",
                f"Give it another name in the file, here and wherever {name!r} is used",
            )
    named = replace(point, columns=columns.of_table())
    return named.renamed(named.column_name)


def note_unbuilt(pipeline: Pipeline, drafts: Mapping[str, ColumnsDraft]) -> None:
    """Note topics whose records `produce` could not make of a ledger's row."""
    for hop in pipeline.hops:
        source, target = pipeline.points.get(hop.source), pipeline.points.get(hop.target)
        if Remedy.PRODUCE not in hop.remedies.chosen or not can_look_up(source) or not has_log(target):
            continue
        found = cannot_be_built(pipeline, hop, source, target)
        lines = [line for point in (hop.target, hop.source) for line in drafts[point].lines.values()]
        if found is not None and lines:
            lines[0].complain(
                found,
                f"Name a column that holds the whole value under 'payload' at points.{hop.source}, or report what is "
                f"missing on {hop.name}",
            )


def note_unused(pipeline: Pipeline, drafts: Mapping[str, ColumnsDraft]) -> None:
    """Note the columns of points that nothing asks for, and names that stand for a column which has another one."""
    for name, point in pipeline.points.items():
        draft, used = drafts[name], _used(pipeline, name)
        for column in sorted(draft.places.keys() - used):
            draft.lines[column].complain(
                "is a column that nothing uses",
                f"Name it under 'compare', or in a 'where' or 'write' of a hop of {name}, or take the line out",
            )
        if can_look_up(point):
            _note_other_name(point, draft, used)


def _note_other_name(point: TablePoint, draft: ColumnsDraft, used: Iterable[str]) -> None:
    known = {column: name for name, column in draft.places.items()}
    for name in sorted(set(used) - draft.places.keys()):
        if name in known:
            draft.lines[known[name]].complain(
                f"is the column {name!r} of {point.table}, which the file names {name!r} elsewhere",
                "Use one name for a column in the whole file",
            )


def _used(pipeline: Pipeline, point: str) -> frozenset[str]:
    """Return the names by which the file asks a point for columns."""
    return frozenset([*columns_read_at(pipeline, point), *_of_hops(pipeline, point)])


def _of_hops(pipeline: Pipeline, point: str) -> Iterator[str]:
    for hop in pipeline.hops:
        if hop.source == point:
            yield from (term.column for term in (parse_where(hop.where) if hop.where else ()))
            target = pipeline.points.get(hop.target)
            if can_look_up(target) and target.version is not None:  # an older record is not written over its row
                yield target.version
        if point in (hop.source, hop.target):
            yield from hop.write
        if hop.target == point:
            yield from hop.leave
