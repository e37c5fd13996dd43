"""Name the hops that a repair for one hop may break: those at the places of the rows that it changes."""

from collections.abc import Iterator
from dataclasses import dataclass

from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up

TouchedEnd = tuple[str, Remedy, str]
"""The hop that was repaired, the remedy, and the point that it wrote to."""


@dataclass(frozen=True, kw_only=True)
class TouchedHop:
    """A hop, and which of its ends is the table whose rows a repair for another hop changed."""

    hop: Hop
    is_source_changed: bool

    @property
    def changed(self) -> str:
        """The point with the rows."""
        return self.hop.source if self.is_source_changed else self.hop.target

    @property
    def other(self) -> str:
        """The point that the rows are held against."""
        return self.hop.target if self.is_source_changed else self.hop.source


def touched_hops(pipeline: Pipeline, end: TouchedEnd) -> tuple[TouchedHop, ...]:
    """Return the other hops at the tables that a repair wrote to, or that loaded what it sent, in file order.

    Of a record that is produced all stores behind its topic are judged with it (`judge_key`), so that only hops that
    lead there from elsewhere are among them.
    """
    repaired, remedy, target = end
    own = next((hop for hop in pipeline.hops if hop.name == repaired), None)
    if own is None or target not in pipeline.points:
        return ()
    places = {pipeline.place_of(name) for name in _tables(pipeline, own, remedy, target)}
    passed = pipeline.from_here_on(target) if remedy is Remedy.PRODUCE else frozenset[str]()
    return tuple(
        TouchedHop(hop=hop, is_source_changed=is_source)
        for hop in pipeline.hops
        for is_source in (True, False)
        if hop != own and pipeline.place_of(hop.source if is_source else hop.target) in places
        if is_source or hop.source not in passed
        if _is_table(pipeline, hop.source if is_source else hop.target)
    )


def _tables(pipeline: Pipeline, own: Hop, remedy: Remedy, target: str) -> Iterator[str]:
    """Yield the tables whose rows are others afterwards: by the action itself, or by the loaders of what it sends."""
    starts = [target]
    if remedy is Remedy.REDELIVER:
        starts = [hop.target for hop in pipeline.redelivery_readers(own)]
    for start in starts:
        yield from (store.name for store in pipeline.stores_at(start))


def _is_table(pipeline: Pipeline, name: str) -> bool:
    return can_look_up(pipeline.points[name])
