"""Describe what is kept of a pipeline, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from makewhole.config.values import written_duration
from makewhole.journal.database import JournalSession
from makewhole.journal.retention.removals import NOTHING, Amount
from makewhole.lake.storage import Storage, StoredFile
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.retention import Kept
from makewhole.publishing.place import root_of
from makewhole.window.context import connections_of


@dataclass(frozen=True, kw_only=True)
class House:
    """A pipeline, where it keeps what is written for it, and the connections of its points. `is_dry`: nothing is
    decided and nothing removed."""

    pipeline: Pipeline
    journal: JournalSession
    storage: Storage
    connections: Mapping[str, Connection] = field(default_factory=dict)
    is_dry: bool = False

    @cached_property
    def outside_windows(self) -> Sequence[StoredFile]:
        """The files of the key index and the anchors of the chain, which do not lie with those of a window."""
        name = self.pipeline.name
        return [*self.storage.files_below(f"{name}/index"), *self.storage.files_below(f"{name}/certificates")]

    @property
    def published_to(self) -> Sequence[str]:
        """The folders into which the pipeline publishes by its file: nothing waits for those that were given up."""
        return [root_of(self.pipeline, publish, self.storage) for publish in self.pipeline.publish]

    def kept(self, kind: Kept) -> str:
        """Return for how long a kind is kept, as the file writes it."""
        return written_duration(dict(self.pipeline.keep)[kind])


def house_of(pipeline: Pipeline, journal: JournalSession, *, is_dry: bool = False) -> House:
    """Return a pipeline with what it keeps, and with its connections where something of plans may go.

    Raises:
        ConfigurationError: the storage, or a connection, is not configured.
    """
    kinds = {kind for kind, _ in pipeline.keep}
    return House(
        pipeline=pipeline,
        journal=journal,
        storage=Storage.from_environment(),
        connections=connections_of(pipeline) if kinds & {Kept.EFFECTS, Kept.QUARANTINE} else {},
        is_dry=is_dry,
    )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result for one kind of a window, or of a plan: how much was removed, or would be, and why it stays."""

    kind: Kept
    window: int
    plan: str | None = None
    amount: Amount = NOTHING
    stays: str | None = None

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": self.kind.value,
            "window": self.window,
            "plan": self.plan,
            "files": self.amount.files,
            "size_bytes": self.amount.size_bytes,
            "rows": self.amount.rows,
            "stays": self.stays,
        }
