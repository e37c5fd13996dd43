"""Describe the evidence that the numbering of a topic's producers gives of its records."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class SequenceEvidence(Protocol):
    """The state of the numbering of a topic's producers, JSON-able. Evidence, never a verdict."""

    def of(self, partition: int, producer_id: int, epoch: int) -> Mapping[str, Any] | None:
        """Return the state of one producer epoch in a partition; None when it is not known."""
        ...

    def suspects(self) -> Sequence[Mapping[str, Any]]:
        """Return the producers whose numbering is broken, or whose epoch was bumped: they may have lost records."""
        ...


class NoSequences:
    """The sequence evidence of a table, or of a topic whose producers were not followed: none."""

    def of(self, partition: int, producer_id: int, epoch: int) -> None:  # noqa: ARG002
        return None

    def suspects(self) -> Sequence[Mapping[str, Any]]:
        return ()
