"""Ask the topics of a store for tombstones that came since a window was judged: their keys were deleted on purpose."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import polars as pl

from makewhole.compensation.execution.look_again.topic_tail import FollowedTopic, TopicTail
from makewhole.compensation.freezing.sources import ErasedSince
from makewhole.model.pipeline import TablePoint, TopicPoint
from makewhole.model.positions import SeenLog
from makewhole.model.window import Window
from makewhole.window.context import WindowContext


@dataclass(frozen=True, kw_only=True)
class TombstonesSince:
    """The tombstones behind the places up to which topics were looked at, by `seen` of a topic point."""

    context: WindowContext
    seen: Callable[[str], SeenLog]

    def erased(self, store: TablePoint, keys: Iterable[str]) -> ErasedSince:
        """Return which of the keys were erased from a store that tombstones tell."""
        assert store.erased is not None
        wanted, told = pl.Series("key", sorted(set(keys)), dtype=pl.String), dict[str, str]()
        for name in store.erased.topics if len(wanted) else ():
            point = self.context.pipeline.points[name]
            assert isinstance(point, TopicPoint)
            topic = FollowedTopic(connection=self.context.kafka(point), point=point, tombstones_erase=True)
            with TopicTail(topic, self.seen(name), wanted) as tail:
                found = erased_in(tail, store)
            if found.not_known is not None:
                return found
            told = {**found.told, **told}
        return ErasedSince(told=told)


def erased_in(tail: TopicTail, store: TablePoint) -> ErasedSince:
    """Read a topic on, and return which of the keys that are followed there were erased from a store."""
    assert store.erased is not None
    tail.read_on()
    if tail.not_known is not None:
        return ErasedSince(not_known=f"{tail.not_known}, so that a tombstone of the key may have been there")
    return ErasedSince(told={key: f"{store.erased.told_by}: {place}" for key, place in tail.erased.items()})


def ranges_read(window: Window, topic: str) -> SeenLog:
    """Return the end of a window's ranges of a topic: so far it was looked at, at least."""
    parts = window.ranges.get(topic, ())
    return SeenLog(topic_id=parts[0].topic_id if parts else None, offsets={part.partition: part.hi for part in parts})
