"""Read the sequence evidence of a topic's producers from a snapshot, when a finding first needs it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.lake.storage import Storage

_SUSPECTS = 10


class StoredSequences:
    """The evidence in a snapshot's file `sequences.json`; none without a file (path None)."""

    def __init__(self, storage: Storage, path: str | None) -> None:
        self._storage, self._path = storage, path

    @cached_property
    def _audits(self) -> Mapping[int, SequenceAudit]:
        if self._path is None:
            return {}
        document = json.loads(self._storage.read_bytes(self._path))
        partitions = document["partitions"].items()
        return {int(partition): SequenceAudit.from_json(known["audit"]) for partition, known in partitions}

    def of(self, partition: int, producer_id: int, epoch: int) -> Mapping[str, Any] | None:
        """Return the state of one producer epoch in a partition; None when it is not known."""
        audit = self._audits.get(partition)
        return None if audit is None else audit.evidence_of(producer_id, epoch)

    def suspects(self) -> Sequence[Mapping[str, Any]]:
        """Return the ten likeliest producers of lost records: missing heads first, then gaps, then bumped epochs."""
        ranked = sorted(self._suspected(), key=lambda pair: pair[0])
        return [suspect for _, suspect in ranked[:_SUSPECTS]]

    def _suspected(self) -> Iterator[tuple[tuple[int, ...], Mapping[str, Any]]]:
        for partition, audit in sorted(self._audits.items()):
            for producer in audit.producers:
                counts = audit.counts_of(producer)
                if not (counts.missing_heads or counts.gaps or producer.bumps):
                    continue
                order = (-counts.missing_heads, -counts.gaps, -producer.bumps, partition, producer.producer_id)
                state = audit.evidence_of(producer.producer_id, producer.last.producer_epoch)
                yield order, {"partition": partition, **(state or {})}
