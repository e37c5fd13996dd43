"""Read `write` and `leave` of a hop: what becomes of the columns of a new row that nothing compares."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from makewhole.config import values
from makewhole.config.points import PointDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.points import PointKind, can_look_up

_LEAVE = "Name columns, for example 'leave: [remark]'"


@dataclass(frozen=True, kw_only=True)
class WrittenColumns:
    """The columns that a new row gets from its record (name → declared type), and those that are left to the table."""

    write: Mapping[str, str] = field(default_factory=dict)
    leave: tuple[str, ...] = ()


def read_written_columns(
    section: Section, name: str, target: PointDraft | None, compared: Mapping[str, str]
) -> WrittenColumns:
    """Return the two as far as they can be read; what is wrong is noted. `name` is the hop's, `target` where it leads,
    `compared` what the hop compares."""
    write_place, leave_place = section.get("write"), section.get("leave")
    for place in (write_place, leave_place):
        if place is not None and target is not None and target.kind is PointKind.TOPIC:
            place.complain(f"{name} leads into a topic, which has no columns", "Take the line out")
    write = _read_write(write_place) if write_place else {}
    leave = leave_place.words(values.logical_name) if leave_place else ()
    places = _places(write_place, write, leave_place, leave or ())
    for column, place in places.items():
        _note_decided(column, place, target, compared, write.get(column))
    for column in write.keys() & set(leave or ()):
        places[column].complain(f"{column!r} is under both 'write' and 'leave'", "Keep one of the two")
    return WrittenColumns(write=write, leave=leave or ())


def _places(
    write_place: YamlPlace | None, write: Mapping[str, str], leave_place: YamlPlace | None, leave: tuple[str, ...]
) -> dict[str, YamlPlace]:
    """Return where each column is named."""
    places = {column: leave_place for column in leave if leave_place is not None}
    return places | {column: write_place for column in write if write_place is not None}


def _read_write(place: YamlPlace) -> Mapping[str, str]:
    section = place.section()
    types = {}
    for column, type_place in section or ():
        try:
            values.logical_name(column)
        except values.UnfitError as unfit:
            type_place.complain(unfit.found, unfit.remedy)
        types[column] = type_place.text(values.compare_type) or ""
    return types


def _note_decided(
    column: str, place: YamlPlace, target: PointDraft | None, compared: Mapping[str, str], declared: str | None
) -> None:
    """Note a column of which the rest of the file says something else."""
    point = target.point if target else None
    if column in compared and declared is None:
        place.complain(f"{column!r} is compared, and so written", "Take it out here")
    elif column in compared and declared != compared[column]:
        place.complain(f"{column!r} is compared as {compared[column]}, and so written", "Take it out here")
    elif can_look_up(point) and column in point.key and declared is None:
        place.complain(f"{column!r} is part of the key, and so written", "Take it out here")
