"""Read `publish` of the topic points of a pipeline file: where their records are published, each key once."""

import re
from collections.abc import Mapping, Sequence

from makewhole.config.points import PointDraft, named_topic
from makewhole.config.tree import Section, YamlPlace
from makewhole.config.values import UnfitError, shown
from makewhole.model.hops import Hop
from makewhole.model.points import Publish, has_log

_PATH = re.compile(r"(/|[a-z][a-z0-9+.-]*://)[^\s]+", re.ASCII)


def read_publish(
    drafts: Mapping[str, PointDraft], hops: Sequence[Hop], compare: Mapping[str, str]
) -> tuple[Publish, ...]:
    """Return what is published of which points, in file order; what is wrong is noted."""
    published: list[Publish] = []
    for name, draft in drafts.items():
        if draft.publish is None:
            continue
        section = draft.publish.section
        _check_point(draft.publish.place, name, draft, hops, compare)
        wanted = _read(section, name, drafts)
        _check_places(section, wanted, hops, published)
        published.append(wanted)
    return tuple(published)


def _read(section: Section, name: str, drafts: Mapping[str, PointDraft]) -> Publish:
    section.only("path", "topic")
    path, topic = section.get("path"), section.get("topic")
    return Publish(
        point=name,
        path=path.text(_path) if path else None,
        topic=named_topic(topic, drafts) if topic else None,
    )


def _path(text: str) -> str:
    if not _PATH.fullmatch(text):
        raise UnfitError(
            f"{shown(text)} is no folder of a storage",
            "Write '/folder', 's3://connection@bucket/folder' or another URI",
        )
    return text.rstrip("/")


def _check_point(
    place: YamlPlace, name: str, draft: PointDraft, hops: Sequence[Hop], compare: Mapping[str, str]
) -> None:
    if (hops or has_log(draft.point)) and not any(name in (hop.source, hop.target) for hop in hops):
        place.complain("is of a topic that no hop joins, so that nothing in it is verified", "Add a hop to or from it")
    if draft.is_by_coordinates:
        place.complain(
            "is of a topic whose key is where its records lie, so that a record sent again has another key",
            "Give the topic the business key",
        )
    if has_log(draft.point) and draft.point.explode is not None:
        place.complain(
            "is of a topic whose events are elements of its records, and what is published is records",
            "Publish another topic, or take `explode` out",
        )
    joined = [hop for hop in hops if name in (hop.source, hop.target)]
    if not any([compare if hop.compare is None else hop.compare for hop in joined] or [compare]):
        place.complain(
            "needs 'compare': by it a record that was sent again is distinguished from one that says something else",
            "Name the columns of 'compare'",
        )


def _check_places(section: Section, wanted: Publish, hops: Sequence[Hop], others: Sequence[Publish]) -> None:
    path, topic = section.get_quietly("path"), section.get_quietly("topic")
    if path is not None and wanted.path is not None and wanted.path in {other.path for other in others}:
        path.complain("is where another point is published", "Give each point a folder of its own")
    if topic is None or wanted.topic is None:
        return
    used = {name for hop in hops for name in (hop.source, hop.target, hop.redeliver_to, hop.reverse and hop.reverse.to)}
    if wanted.topic == wanted.point or wanted.topic in used:
        topic.complain(
            "is a topic that the hops of this pipeline read or write",
            "Name a topic point of its own, to which nothing else is written",
        )
    if wanted.topic in {other.topic for other in others}:
        topic.complain("is where another point is published", "Give each point a topic of its own")
