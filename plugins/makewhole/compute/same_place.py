"""Identify places by what they are: a table by its server, database and number, a topic by its id.

A connection, a point and a table may get another name. What the journal keeps of a pipeline (the key index, keys handed
over, findings) is under the names of its points.
"""

from collections.abc import Mapping
from dataclasses import replace

from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log, is_by_coordinates

Identities = Mapping[str, str]
"""Point → what its place is. Any other point is known by its connection and the name of its table or topic."""


def with_identities(pipeline: Pipeline, places: Identities) -> Pipeline:
    """Return the pipeline with points that know what their places are; it stays the same pipeline file."""
    points = {name: replace(point, identity=places.get(name, "")) for name, point in pipeline.points.items()}
    return replace(pipeline, points=points)


def with_former_filters(pipeline: Pipeline, former: Mapping[str, str]) -> Pipeline:
    """Return the pipeline with hops that know the filters of the windows before, where the file has others since."""
    hops = tuple(replace(hop, former_where=former.get(hop.name)) for hop in pipeline.hops)
    return replace(pipeline, hops=hops)


def require_same_names(pipeline: Pipeline, before: Identities, now: Identities) -> None:
    """Refuse points whose places the windows before knew under other names alone.

    Raises:
        RefusedError: what is kept from before would not be found again.
    """
    for name, place in now.items():
        former = [known for known, known_place in before.items() if known_place == place]
        names = {known for known, now_place in now.items() if now_place == place}
        if former and not names & {*former}:
            raise RefusedError(
                f"{pipeline.name}: {name} is what the windows before knew as {former[0]}, and what is kept from them "
                "(the key index, keys handed over, findings) is under that name: nothing of it would be found. Call "
                f"the point {former[0]} again; to give it another name, give the pipeline another name, too: it begins "
                "a history of its own, from `start:` on"
            )


def require_reversed_once(pipeline: Pipeline) -> None:
    """Refuse two hops that would reverse the same repetition: at one place under two names, or at one behind the other.

    Raises:
        RefusedError: it would be taken back twice.
    """
    reversing = [hop for hop in pipeline.hops if hop.reverse is not None and Remedy.REVERSE in hop.remedies.chosen]
    for at, hop in enumerate(reversing):
        for other in reversing[:at]:
            ends = {pipeline.place_of(end) for end in (hop.target, other.target)}
            behind = [
                {pipeline.place_of(point) for point in pipeline.from_here_on(end)} for end in (hop.target, other.target)
            ]
            if any(ends <= places for places in behind):
                raise RefusedError(
                    f"{pipeline.name}: {other.name} and {hop.name} would both reverse one repetition, which is at both "
                    f"their ends: {other.target} and {hop.target} are one place, or one is filled from the other. "
                    "Write `reverse` on one of these hops alone, the one to the point where the harm is done"
                )


def require_one_key(pipeline: Pipeline) -> None:
    """Refuse points of one place that hops lead to and whose keys differ.

    Raises:
        RefusedError: nothing distinguishes the rows that one hop brings from those of another.
    """
    first: dict[str, str] = {}
    for name in dict.fromkeys(hop.target for hop in pipeline.hops):
        other = first.setdefault(pipeline.place_of(name), name)
        known, key = (", ".join(pipeline.points[point].key_places) for point in (other, name))
        if known != key:
            raise RefusedError(
                f"{pipeline.name}: {other} and {name} are one place, and are known by other keys ({known}; {key}): the "
                "rows that come by one hop would be unexpected on the other. Write the same `key` at both points, or "
                f"reconcile {name} in a pipeline of its own without `unexpected`"
            )


def require_one_log(pipeline: Pipeline) -> None:
    """Refuse points of one table that two topics fill by coordinates, which are the same in both.

    Raises:
        RefusedError: the row of a record of one is taken for that of the other's.
    """
    first: dict[str, str] = {}
    for hop in pipeline.hops:
        if not has_log(source := pipeline.points[hop.source]) or not is_by_coordinates(source.key):
            continue
        other = first.setdefault(pipeline.place_of(hop.target), hop.source)
        if pipeline.place_of(other) != pipeline.place_of(hop.source):
            raise RefusedError(
                f"{pipeline.name}: {other} and {hop.source} fill one table ({hop.target}) by coordinates, which are "
                "the same in both. Let each topic fill a table of its own, or name a business key at the points"
            )


def require_no_circle(pipeline: Pipeline) -> None:
    """Refuse hops that come back to the place where they begin, by points of other names.

    Raises:
        RefusedError: what is repaired at such a place would be one more source of it.
    """
    for hop in pipeline.hops:
        start = pipeline.place_of(hop.source)
        again = next((point for point in pipeline.from_here_on(hop.target) if pipeline.place_of(point) == start), None)
        if again is not None:
            raise RefusedError(
                f"{pipeline.name}: {hop.source} and {again} are one place, and hop {hop.name} leads from it back to "
                "it: events go one way. Take one of the hops between them out"
            )
