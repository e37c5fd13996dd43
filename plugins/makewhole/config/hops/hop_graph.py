"""Check that the hops of a pipeline file make sense together: no circle, no double, no point left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.config.hops.written_topics import answered_by
from makewhole.config.points import PointDraft
from makewhole.config.tree import YamlPlace
from makewhole.model.hops import Hop, Remedy
from makewhole.model.points import PointKind


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The two ends of a hop, None where they could not be read; `place` is the hop's."""

    place: YamlPlace
    source: str | None
    target: str | None


def note_mixed(hops: list[Hop], drafts: Mapping[str, PointDraft]) -> None:
    """Note a topic whose copies of a key are versions on one hop and repetitions on another."""
    for name, draft in drafts.items():
        touching = [hop for hop in hops if name in (hop.source, hop.target)]
        if draft.kind is PointKind.TOPIC and len({hop.semantics for hop in touching}) > 1:
            listed = ", ".join(f"{hop.name} {hop.semantics}" for hop in touching)
            draft.place.complain(
                f"has hops of both semantics ({listed})",
                "Several records of one key are either its versions or repetitions: give all its hops the same one",
            )


def note_doubled(ends: list[Ends]) -> None:
    first: dict[tuple[str, str], int] = {}
    for hop in ends:
        if hop.source is None or hop.target is None:
            continue
        pair = (hop.source, hop.target)
        if pair in first:
            hop.place.complain(
                f"{pair[0]}→{pair[1]} is there twice (first in line {first[pair]})", "Keep one of the two"
            )
        first.setdefault(pair, hop.place.line)


def note_circle(ends: list[Ends]) -> None:
    """Note every hop that closes a circle with the hops before it."""
    onward: dict[str, list[str]] = {}
    for hop in ends:
        if hop.source is None or hop.target is None:
            continue
        back = _path(onward, hop.target, hop.source)
        if back is not None:
            circle = "→".join([*back, hop.target])
            hop.place.complain(f"closes the circle {circle}", "Take one of these hops out: events go one way")
            continue
        onward.setdefault(hop.source, []).append(hop.target)


def _path(onward: Mapping[str, list[str]], start: str, goal: str) -> tuple[str, ...] | None:
    """Return the points from `start` to `goal` along the hops so far, None when there is no path."""
    reached: dict[str, tuple[str, ...]] = {start: (start,)}
    open_ends = [start]
    while open_ends:
        point = open_ends.pop()
        if point == goal:
            return reached[point]
        for following in onward.get(point, []):
            if following not in reached:
                reached[following] = (*reached[point], following)
                open_ends.append(following)
    return None


def note_unjoined(ends: list[Ends], written_topics: list[str | None], drafts: Mapping[str, PointDraft]) -> None:
    """Note points that no hop joins or writes to; not when some name could not be read, since that may be the one."""
    joined = {name for hop in ends for name in (hop.source, hop.target)}
    named = joined | set(written_topics)
    named |= {draft.publish.topic for draft in drafts.values() if draft.publish and draft.publish.topic}
    if None in named or not ends:
        return
    for name, draft in drafts.items():
        if name not in named and not _is_alone(draft):
            draft.place.complain("is joined by no hop", "Join it with a hop, or take it out: nothing would look at it")
        elif name in written_topics and name not in joined and _is_alone(draft):
            draft.place.complain(
                f"asks for the keys of {name} with several records, and remedies write to it: what is in it is not "
                "judged",
                "Take 'duplicates' out, or let the remedies write to another topic",
            )


def _is_alone(draft: PointDraft) -> bool:
    """Return whether a file asks for what is judged of a topic that no hop joins."""
    section = draft.place.section() if draft.kind is PointKind.TOPIC else None
    return section is not None and section.has("duplicates")


def note_reversed_twice(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Mapping[str, PointDraft]) -> None:
    """Note a hop that reverses a copy which another hop reverses, too: the same repetition is a duplicate at every
    point that it passes, and a table can be two points."""
    places = {name: draft.point.place if draft.point else name for name, draft in drafts.items()}
    onward: dict[str, list[str]] = {}
    for _, hop in hops:
        onward.setdefault(hop.source, []).append(hop.target)
    reversing = [(place, hop) for place, hop in hops if answered_by(hop, Remedy.REVERSE)]
    for at, (place, hop) in enumerate(reversing):
        for _, other in reversing[:at]:
            paths = (_path(onward, other.target, hop.target), _path(onward, hop.target, other.target))
            if any(paths) or places[hop.target] == places[other.target]:
                place.complain(
                    f"{hop.name} and {other.name} would both reverse one repetition, which is at both their ends",
                    "Reverse it once: on the hop to the point where the harm is done",
                )
