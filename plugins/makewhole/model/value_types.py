"""Name the types by which a window reads the values of columns, where columns or places say more than `compare`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from makewhole.model.places.record_paths import path_names

_Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ValueTypes:
    """The types of columns by name.

    `values`: of those that the file declares a `string`, or `json`, and tables hold in another type, or a `double` and
    tables hold in four bytes. `filters`: of those that a `where` names. `version_units`: how far apart two versions of
    each table point are at least, as decimals in text.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    version_units: Mapping[str, str] = field(default_factory=dict)

    def of_values(self, declared: Mapping[str, str]) -> dict[str, str]:
        """Return the types by which columns with these declared types are read."""
        return {
            name: self.values.get(name, kind)
            if kind in ("string", "double", "json")
            else kind  # the file's word for every other type
            for name, kind in declared.items()
        }


DECLARED = ValueTypes()
"""Every column as the file declares it."""


class Unit(NamedTuple):
    """Unit of a number that counts from 1970: parts of a second, `10 ** digits` of them, or days (`digits` is None)."""

    digits: int | None
    type: str


UNITS: Mapping[str, Unit] = {
    "timestamp(s)": Unit(0, "timestamp"),
    "timestamp(ms)": Unit(3, "timestamp"),
    "timestamp(us)": Unit(6, "timestamp"),
    "timestamp(ns)": Unit(9, "timestamp"),
    "date(days)": Unit(None, "date"),
}
"""The units as a pipeline file names them."""


def with_unit(place: str, units: _Pairs) -> str:
    """Return a place of a record with the unit of what stands there, if it has one."""
    unit = dict(units).get(place)
    return place if unit is None else f"{place} as {unit}"


_AT = " at "


def read_at(compared: str) -> str:
    """Return the places in what `Pipeline.compared_everywhere` has of a column; empty: where its name says."""
    return compared.partition(_AT)[2]


def compared_at(declared: str, places: Iterable[str]) -> str:
    """Return what `Pipeline.compared_everywhere` has of a column that is read at these places."""
    return f"{declared}{_AT}{', '.join(places)}"


def places_with_units(columns: _Pairs, units: _Pairs) -> dict[str, str]:
    """Return the columns of a topic that are read otherwise than as a field of their name: name → place and unit."""
    paths = {place: path_names(place) for place, _ in units if place.startswith("$.")}
    own = {names[0]: place for place, names in paths.items() if len(names) == 1}
    return {name: with_unit(place, units) for name, place in {**own, **dict(columns)}.items()}
