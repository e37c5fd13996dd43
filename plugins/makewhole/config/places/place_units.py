"""Read places of a topic's records together with the units in which numbers there count moments and days."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from yaml import MappingNode

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.points import TopicPoint, has_log
from makewhole.model.value_types import UNITS

_COUNTED = ("$.", "event:")


@dataclass(kw_only=True)
class UnitsDraft:
    """The units of a topic's places as far as they could be read: place → unit, and the line of each."""

    units: dict[str, str] = field(default_factory=dict)
    lines: dict[str, YamlPlace] = field(default_factory=dict)

    def read(self, line: YamlPlace, parse: Callable[[str], str]) -> str | None:
        """Return the place at a line, written as a text, or as `{field: PLACE, as: UNIT}`, whose unit is kept."""
        if not isinstance(line.node, MappingNode):
            return line.text(parse)
        section = Section(line)
        section.only("field", "as")
        field_line = section.need("field", "Name the place, for example 'field: \"$.at\"'")
        unit_line = section.need("as", f"Say what is counted there: {', '.join(UNITS)}")
        place = field_line.text(parse) if field_line else None
        unit = unit_line.text(values.unit) if unit_line else None
        if place is not None and unit is not None and unit_line is not None:
            self._keep(place, unit, unit_line)
        return place

    def _keep(self, place: str, unit: str, line: YamlPlace) -> None:
        if not place.startswith(_COUNTED):
            line.complain(
                f"is the unit of {place}, and only fields of a value have one",
                "Name a field: '$.field', or 'event:field' of a change event",
            )
        elif self.units.setdefault(place, unit) != unit:
            line.complain(
                f"{place} counts in {unit} here, and in {self.units[place]} in line {self.lines[place].line}",
                "Write the same unit wherever the place is named",
            )
        self.lines.setdefault(place, line)


def read_version(section: Section, units: UnitsDraft) -> str | None:
    """Return the place of a topic's version; what is wrong is noted."""
    line = section.get("version")
    return units.read(line, values.version_part) if line else None


def note_unfit_units(pipeline: Pipeline, drafts: Mapping[str, UnitsDraft]) -> None:
    """Note units of columns that are read as another type than a moment or a day."""
    for name, point in pipeline.points.items():
        if has_log(point) and point.units:
            lines = {place.replace("[*]", ""): line for place, line in drafts[name].lines.items()}
            for column, declared in _types(pipeline, point):
                place = point.column_place(column)
                line, unit = lines.get(place), dict(point.units).get(place)
                if line is not None and unit is not None and not _is_of_time(declared):
                    line.complain(
                        f"counts {column} in {unit}, and it is a {declared} elsewhere in the file",
                        f"Write '{column}: {UNITS[unit].type}' there, or take the unit out to compare the numbers",
                    )


def _types(pipeline: Pipeline, point: TopicPoint) -> Iterator[tuple[str, str]]:
    """Yield the columns of a topic with the types that the file declares."""
    yield from columns_read_at(pipeline, point.name).items()
    for hop in pipeline.hops:
        if hop.source == point.name:
            yield from hop.write.items()


def _is_of_time(declared: str) -> bool:
    return declared == "date" or declared.startswith("timestamp")
