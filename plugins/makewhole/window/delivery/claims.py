"""Work out what a pipeline claims: of each hop, of each topic and table, and for how long records are needed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from makewhole.config.schedules import longest_interval
from makewhole.model.delivery.claims import Delivery, TableClaim
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, TopicPoint, has_log

_ON_REQUEST = timedelta(days=1)
"""The interval of windows that are only made when they are asked for."""


@dataclass(frozen=True, kw_only=True)
class HopClaim:
    """The delivery of a hop. `is_derived`: its file does not say it."""

    hop: Hop
    delivery: Delivery
    is_derived: bool


def claim_of(hop: Hop) -> HopClaim:
    """Return what is claimed of a hop: what its file says, or else exactly once where what loads the target keeps its
    offsets with the result, and at least once where it does not."""
    keeps_offsets = hop.progress is not None or hop.control_topic is not None
    derived = Delivery.EXACTLY_ONCE if keeps_offsets else Delivery.AT_LEAST_ONCE
    return HopClaim(hop=hop, delivery=hop.delivery or derived, is_derived=hop.delivery is None)


def forbids_loss(hops: Iterable[Hop]) -> bool:
    """Return whether one of these hops may lose nothing."""
    return any(claim_of(hop).delivery.forbids_loss for hop in hops)


def claim_of_table(pipeline: Pipeline, point: TablePoint) -> TableClaim:
    """Return what is claimed of a table by the hops at it."""
    into, from_here = pipeline.hops_into(point.name), pipeline.readers_of(point.name)
    overwrites = any(pipeline.overwrites(hop) for hop in into)
    return TableClaim(
        forbids_loss=forbids_loss([*into, *from_here]) or not [*into, *from_here],
        is_target=bool(into),
        overwrites=overwrites,
        is_keyed=any(_needs_unique_key(pipeline, hop) for hop in into),
        is_captured=any(_is_captured(pipeline, hop) for hop in from_here),
        needed=needed_time(pipeline),
    )


def _needs_unique_key(pipeline: Pipeline, hop: Hop) -> bool:
    """Return whether only a unique key keeps a second row of an event, or an older version, out of the target."""
    keeps_offsets = hop.progress is not None or hop.control_topic is not None
    return pipeline.overwrites(hop) or (claim_of(hop).delivery.forbids_repeats and not keeps_offsets)


def _is_captured(pipeline: Pipeline, hop: Hop) -> bool:
    target = pipeline.points[hop.target]
    return has_log(target) and target.value == "debezium"


def is_of_events(pipeline: Pipeline, point: TopicPoint) -> bool:
    """Return whether each record of a topic counts, and not only the latest of its key."""
    hops = [*pipeline.hops_into(point.name), *pipeline.readers_of(point.name)]
    return any(hop.semantics is Semantics.EVENT for hop in hops) or point in pipeline.topics_alone


def needed_time(pipeline: Pipeline) -> timedelta:
    """Return how long a record is needed after it was sent: the longest interval of the schedule, the time to settle,
    and the time for which a key may be handed on from window to window."""
    interval = _ON_REQUEST if pipeline.schedule is None else longest_interval(pipeline.schedule)
    return interval + pipeline.settle + pipeline.pending_max_age


def claims(pipeline: Pipeline) -> Iterator[HopClaim]:
    """Yield what is claimed of each hop, in file order."""
    return map(claim_of, pipeline.hops)
