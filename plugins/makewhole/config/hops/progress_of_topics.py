"""Find where one progress would be read for several topics: no offset of one may be taken for an offset of another."""

from collections.abc import Sequence
from dataclasses import replace

from makewhole.config.hops.redelivery import Drafts
from makewhole.config.points import PointDraft
from makewhole.config.tree import YamlPlace
from makewhole.model.hops import Hop
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TopicPoint, can_look_up, has_log


def note_shared_progress(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts) -> None:
    """Note a table of progress without a column of topics from which two topics would have the same offsets."""
    first: dict[tuple[str, SinkProgress], Hop] = {}
    for place, hop in hops:
        target = drafts[hop.target].point
        if hop.progress is None or hop.progress.is_of_files or hop.progress.topic is not None or target is None:
            continue
        other = first.setdefault((target.connections[0], hop.progress), hop)
        if len(_topics([other.source, hop.source], drafts)) > 1:
            place.complain(
                f"{other.name} and {hop.name} read one progress, and nothing says which topic an offset of "
                f"{hop.progress.table} is of",
                "Write 'topic: COLUMN' under 'progress' of both with the column of the topic's name, or a 'where' that "
                "distinguishes their rows",
            )


def with_other_topics(hops: Sequence[Hop], drafts: Drafts) -> tuple[Hop, ...]:
    """Return the hops; the progress by files knows which other topics, those of records that are sent again among them,
    come into a folder whose rows do not say theirs."""
    return tuple(
        replace(hop, progress=replace(hop.progress, other_topics=_other_topics(hop, hops, drafts)))
        if hop.progress is not None and hop.progress.is_of_files
        else hop
        for hop in hops
    )


def _other_topics(hop: Hop, hops: Sequence[Hop], drafts: Drafts) -> tuple[str, ...]:
    point = drafts[hop.target].point
    if not can_look_up(point) or point.dataset is None or point.dataset.topic is not None:
        return ()
    into = [other for other in hops if _is_at(drafts[other.target], point.place)]
    topics = _topics([name for other in into for name in (other.source, other.redeliver_to)], drafts)
    own = _topics([hop.source], drafts)
    return tuple(topic.topic for place, topic in topics.items() if place not in own)


def _is_at(draft: PointDraft, place: str) -> bool:
    return draft.point is not None and draft.point.place == place


def _topics(names: Sequence[str | None], drafts: Drafts) -> dict[str, TopicPoint]:
    """Return those points that are topics, by their places."""
    points = (drafts[name].point for name in names if name is not None)
    return {point.place: point for point in points if has_log(point)}
