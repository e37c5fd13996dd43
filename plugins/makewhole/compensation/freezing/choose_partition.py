"""Choose the partition of a record that a plan produces, as the topic's own producers would.

It is frozen with the plan. Nothing is produced to a topic in which a known key stands elsewhere than its point's
partitioner says.
"""

from dataclasses import replace

from makewhole.compensation.sources.sources import Sources
from makewhole.kafka.partitioner import KnownKeys, partition_of
from makewhole.model.actions import Payload, ProduceExtra
from makewhole.model.errors import ActionRefusedError, CorruptionError, RefusedError
from makewhole.model.points import Partitioner, TopicPoint
from makewhole.model.refusal import Refusal, RefusalCode


class PartitionChooser:
    """The choice of partitions for one plan. The known keys of a topic are read once, for the first record to it."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._objections: dict[str, Refusal | None] = {}

    def choose(self, name: str, payload: Payload) -> Payload:
        """Return the payload of a record to a topic point with its partition; without one where any will do.

        Raises:
            RefusedError: known keys do not stand where the point's partitioner puts them, or cannot be read.
        """
        point = self._sources.pipeline.topic(name)
        if point.partitioner is Partitioner.RANDOM:
            return payload
        if name not in self._objections:
            self._objections[name] = self._objection(point)
        objection = self._objections[name]
        if objection is not None:
            raise ActionRefusedError(objection)
        count = self._sources.partition_count(name)
        partition = partition_of(point.partitioner, payload.key, count)
        if partition is None:
            return payload
        extra = ProduceExtra(origin=payload.extra.origin, partition_count=count)
        return replace(payload, partition=partition, extra=extra)

    def _objection(self, point: TopicPoint) -> Refusal | None:
        """Return the reason why nothing may be produced to the topic; None: there is none."""
        try:
            known = self._sources.known_keys(point.name)
        except (CorruptionError, RefusedError) as error:
            return Refusal(
                RefusalCode.NOT_KNOWN, f"into which partitions the producers of {point.topic} put their keys: {error}"
            )
        misfits = 0 if known is None else count_misfits(point.partitioner, known)
        if known is None or not misfits:
            return None
        return Refusal(
            RefusalCode.UNFIT,
            f"{misfits} of the last {len(known.places)} keys in {point.topic} do not stand where partitioner "
            f"{point.partitioner} puts them among {known.partitions} partitions; {_remedy(point, known)}",
        )


def count_misfits(partitioner: Partitioner, known: KnownKeys) -> int:
    """Return the number of known keys that stand in another partition than the partitioner would choose."""
    chosen = ((partition, partition_of(partitioner, key, known.partitions)) for partition, key in known.places)
    return sum(expected is not None and expected != partition for partition, expected in chosen)


def _remedy(point: TopicPoint, known: KnownKeys) -> str:
    others = (kind for kind in (Partitioner.MURMUR2, Partitioner.CRC32) if kind is not point.partitioner)
    fitting = next((kind for kind in others if not count_misfits(kind, known)), None)
    if fitting is not None:
        return f"{fitting} puts all of them there: write 'partitioner: {fitting}' on point {point.name}"
    return (
        "no partitioner that is known here does: send these records with the system's own producer, or write "
        f"'partitioner: random' on point {point.name} if any partition will do"
    )
