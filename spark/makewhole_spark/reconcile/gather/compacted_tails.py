"""Decide by the rest of the logs, as it was read for some keys, what compaction may have taken there and from the
windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from makewhole.compute.decode.unread_keys import ComparedKeys, may_take_other_keys
from makewhole.compute.judge.undecidable import UnreadRecords
from makewhole.model.hops import Hop
from makewhole.model.points import TopicPoint
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.gather.unread_records import compacted_records


@dataclass(frozen=True, kw_only=True)
class PieceOfTail:
    """How many offsets of a piece of a partition outside the windows were compacted, and the Kafka keys of its records,
    `compared` with the business keys."""

    partition: int
    compacted: int = 0
    compared: ComparedKeys = field(default_factory=ComparedKeys)


@dataclass(frozen=True, kw_only=True)
class CompactedTail:
    """The rest of a topic's log that says more of compaction than the windows do: the `partitions` from which it took
    records there that may have been the only ones of any key, and the Kafka keys `compared` there with the business
    keys."""

    partitions: frozenset[int] = frozenset()
    compared: ComparedKeys = field(default_factory=ComparedKeys)


def compacted_tail(
    point: TopicPoint, around: ComparedKeys | None, pieces: Sequence[PieceOfTail]
) -> CompactedTail | None:
    """Return what all pieces of a topic outside the windows say of compaction; None: no more than is known from the
    windows. `around`: the Kafka keys that were compared in these; None: they were not compared."""
    compared = sum((piece.compared for piece in pieces), ComparedKeys())
    takes_others = may_take_other_keys(point, None if around is None else around + compared)
    taken = frozenset(piece.partition for piece in pieces if piece.compacted and takes_others)
    is_new = compared.others > 0 and around is not None and not around.others
    return CompactedTail(partitions=taken, compared=compared) if taken or is_new else None


def compacted_with_tails(
    neighbours: NeighbouringWindows, hop: Hop, tails: Mapping[str, CompactedTail]
) -> dict[str, UnreadRecords]:
    """Return by point the records that compaction took and that may have been the only ones of any key of a hop, in the
    windows around this one and in the rest of the logs."""
    compacted = {}
    for point, tail in tails.items():
        other = hop.source if point == hop.target else hop.target
        records = compacted_records(neighbours, point, other=other, tail=tail.compared)
        compacted[point] = replace(records, is_any=records.is_any or bool(tail.partitions))
    return compacted
