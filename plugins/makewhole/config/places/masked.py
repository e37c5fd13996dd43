"""Read `mask` of a pipeline file: the columns whose values are shown and kept as keyed digests alone."""

from collections.abc import Iterator

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace
from makewhole.config.values import shown
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import all_compared
from makewhole.model.points import Point, can_look_up, has_log

_NO_NEED = "Take the column out of `mask`"


def read_mask(top: Section) -> tuple[str, ...]:
    """Return the columns that are masked, in the order of their names; what is wrong is noted."""
    place = top.get("mask")
    return tuple(sorted((place.words(values.logical_name) if place else None) or ()))


def note_unfit_mask(top: Section, pipeline: Pipeline) -> None:
    """Note what cannot be masked: values by which keys are found, and what would carry them on in clear."""
    place = top.get_quietly("mask")
    if place is None or not pipeline.mask:
        return
    known = {*all_compared(pipeline), *(name for hop in pipeline.hops for name in hop.write)}
    for name in pipeline.mask:
        for point in _named_by(pipeline, name):
            place.complain(
                f"names {shown(name)}, by which {point} finds, orders or makes its rows or records: it is shown with "
                "each of them",
                "Take it out of `mask`, and use a key that says nothing about anybody",
            )
        if name not in known:
            place.complain(
                f"names {shown(name)}, which nothing compares or writes, so that no value of it is kept or shown",
                f"Name a column of `compare` or of a hop's `write`: {', '.join(sorted(known)) or 'there is none'}",
            )
    _note_values_carried_on(place, pipeline)


def _named_by(pipeline: Pipeline, column: str) -> Iterator[str]:
    """Yield the points that need the values of a column for more than to compare them."""
    for name, point in pipeline.points.items():
        if column in _needed_columns(point) or point.column_place(column) in _needed_columns(point):
            yield name


def _needed_columns(point: Point) -> frozenset[str]:
    if can_look_up(point):
        return point.named_columns | {*point.key_places, *filter(None, (point.version_place,))}
    if has_log(point):
        return frozenset((*point.key, *filter(None, (point.version,))))
    return frozenset()


def _note_values_carried_on(place: YamlPlace, pipeline: Pipeline) -> None:
    """Note the parts of the file that keep or send values, or that were not tried with masked ones."""
    for hop in pipeline.hops:
        if hop.group is not None and {*pipeline.mask} & {*(hop.compare or ()), *hop.group.columns_of_records}:
            place.complain(
                f"hides what {hop.name} adds up (`group`), and sums have to be shown to be explained", _NO_NEED
            )
        if hop.reverse is not None:
            place.complain(
                f"does not reach the events that {hop.name} sends to take copies back (`reverse`): they are made of "
                "values, which the journal then has",
                "Take `reverse` out of the hop, or the line with `mask`",
            )
    for published in pipeline.publish:
        place.complain(
            f"does not reach what {published.point} publishes: it has every value in clear",
            f"Take `publish` out of {published.point}, or the line with `mask`",
        )
    for name, point in pipeline.points.items():
        if can_look_up(point) and point.dataset is not None:
            place.complain(
                f"is for topics and tables of a database, and {name} is a dataset",
                "Take the line with `mask` out",
            )
    for point in pipeline.topics_alone:
        place.complain(f"is for hops, and {point.name} is judged alone (`duplicates`)", "Take the line with `mask` out")
