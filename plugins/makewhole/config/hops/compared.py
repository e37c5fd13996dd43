"""Read `compare`, of the whole file and of a hop, and note what hops cannot compare differently."""

from collections.abc import Sequence
from contextlib import suppress

from yaml.nodes import MappingNode

from makewhole.config import values
from makewhole.config.hops.redelivery import Drafts
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop
from makewhole.model.places.compared_columns import ColumnTypes


def read_compare(section: Section) -> ColumnTypes | None:
    """Return the columns under `compare` with their types; what is wrong is noted. None: the line is not there."""
    place = section.get("compare")
    if place is None:
        return None
    compared = {}
    for column, type_place in place.section() or ():
        try:
            values.logical_name(column)
        except values.UnfitError as unfit:
            type_place.complain(unfit.found, unfit.remedy)
        compared[column] = type_place.text(values.compare_type) or ""
    return compared


def compared_columns(section: Section, top: Section) -> ColumnTypes:
    """Return the columns that a hop compares, by its own line or else that of the file, as far as they can be read;
    nothing is noted."""
    place = section.get_quietly("compare") or top.get_quietly("compare")
    return {} if place is None else _types(place)


def _types(place: YamlPlace) -> ColumnTypes:
    types: dict[str, str] = {}
    for column, type_place in Section(place) if isinstance(place.node, MappingNode) else ():
        with suppress(values.UnfitError):
            types[column] = values.compare_type(str(type_place.node.value))
    return types


def note_compared_otherwise(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts, top: Section) -> None:
    """Note a column that has two types in the file, and hops into one place that compare different columns."""
    whole = top.get_quietly("compare")
    of_file: ColumnTypes = {} if whole is None else _types(whole)
    types = {name: (declared, "under 'compare' of the file") for name, declared in of_file.items()}
    into: dict[str, tuple[Hop, ColumnTypes]] = {}
    for place, hop in hops:
        compared = of_file if hop.compare is None else hop.compare
        for name, declared in compared.items():
            other, where = types.setdefault(name, (declared, f"on {hop.name}"))
            if other != declared:
                place.complain(
                    f"{hop.name} compares {name} as {declared}, and it is a {other} {where}; a point is read once for "
                    "all its hops",
                    f"Write one type for it, or give it another name here, and its place under 'columns' at the points "
                    f"of {hop.name}",
                )
        point = drafts[hop.target].point
        first, of_first = into.setdefault(hop.target if point is None else point.place, (hop, compared))
        if [*compared.items()] != [*of_first.items()]:
            place.complain(
                f"{first.name} and {hop.name} lead into one place and compare different columns, and each row there is "
                "held to all its sources",
                "Compare the same columns, in the same order, on both",
            )
