"""Hops: from which point to which, how records are delivered, and the remedies that are allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from makewhole.model.delivery.claims import Delivery
from makewhole.model.places.grouping import Grouping
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import (
    NEVER_WRITTEN,
    WRITTEN_IF_ANY,
    WRITTEN_IF_SAID,
)
from makewhole.model.verdict import Verdict


class Reach(StrEnum):
    """Where the proof of a chain of points begins: at what the producer says it sent, or at what is in the log."""

    LEDGER = "ledger"
    LOG = "log"


class Semantics(StrEnum):
    """The promise of a hop. `event`: each key once. `upsert`: the latest version per key."""

    EVENT = "event"
    UPSERT = "upsert"


class Remedy(StrEnum):
    """The action of compensation for one kind of verdict. `RESTORE` is only in plans that undo another."""

    REDELIVER = "redeliver"
    UPSERT = "upsert"
    PRODUCE = "produce"
    QUARANTINE = "quarantine"
    REVERSE = "reverse"
    REPORT = "report"
    RESTORE = "restore"


FOR_ROWS = frozenset({Remedy.UPSERT, Remedy.QUARANTINE, Remedy.REVERSE})
"""The remedies that write rows, or take them out of a store."""


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """The remedy per verdict on one hop."""

    missing: Remedy
    duplicate: Remedy
    mismatched: Remedy
    unexpected: Remedy = Remedy.REPORT
    vanished: Remedy = Remedy.REPORT

    @property
    def chosen(self) -> frozenset[Remedy]:
        """The remedies that answer any verdict."""
        return frozenset({self.missing, self.duplicate, self.mismatched, self.unexpected, self.vanished})

    def answer_to(self, verdict: Verdict) -> Remedy:
        """Return what is done about a verdict; there is one for every gap, and for what has vanished."""
        return {
            Verdict.MISSING: self.missing,
            Verdict.DUPLICATE: self.duplicate,
            Verdict.MISMATCHED: self.mismatched,
            Verdict.UNEXPECTED: self.unexpected,
            Verdict.CONFLICT: Remedy.REPORT,
            Verdict.VANISHED: self.vanished,
        }[verdict]


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """The business event that takes back an extra copy whose effect cannot be deleted. `to` is a topic point.

    Every text is a template (`makewhole.config.template.expressions`). `value` is the JSON object to be: of texts,
    numbers as Decimal, booleans and None, in mappings and lists.
    """

    to: str
    value: Mapping[str, Any]
    key: str = "{{ key }}"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One hop. `where` narrows the upstream: comparisons joined by `and`.

    `progress` is where what loads the target keeps its own progress: it goes before `consumer_group`. `control_topic`
    is that of Iceberg's sink, whose tasks are in that group. `redeliver_to` is the topic point that redelivered records
    go to; None: back to the source. `redeliver_despite`: consumer groups that may read a record a second time.
    `reverse` is there when a remedy is `reverse`. `write` maps the columns that `upsert` writes into new rows besides
    the compared ones to their declared types; `leave` names those that it leaves to the table. `group`: a row is
    made of all records of its key. `delivery` is a claim, and decides nothing of a window. `former_where`, not in the
    file, is the filter of the windows before (empty: none).
    """

    source: str
    target: str
    remedies: Remedies
    semantics: Semantics = Semantics.EVENT
    consumer_group: str | None = None
    where: str | None = None
    redeliver_to: str | None = None
    redeliver_despite: tuple[str, ...] = ()
    reverse: Reverse | None = None
    write: Mapping[str, str] = field(default_factory=dict, metadata=WRITTEN_IF_ANY)
    leave: tuple[str, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    progress: SinkProgress | None = field(default=None, metadata=WRITTEN_IF_ANY)
    control_topic: str | None = field(default=None, metadata=WRITTEN_IF_ANY)
    compare: Mapping[str, str] | None = field(default=None, metadata=WRITTEN_IF_SAID)
    group: Grouping | None = field(default=None, metadata=WRITTEN_IF_ANY)
    delivery: Delivery | None = field(default=None, metadata=NEVER_WRITTEN)
    former_where: str | None = field(default=None, metadata=NEVER_WRITTEN)

    @property
    def name(self) -> str:
        return f"{self.source}→{self.target}"

    @property
    def slug(self) -> str:
        """The name in ASCII, for paths and ids."""
        return f"{self.source}-{self.target}"

    @property
    def reader(self) -> str | None:
        """Name what says how far the target is loaded, for messages; None: the file does not. A group's name has no
        spaces, so that nothing else has this text."""
        if self.progress is not None:
            return f"the sink of {self.target} ({self.progress.text})"
        of_table = "" if self.control_topic is None else f" and the table of its sink ({self.control_topic})"
        return None if self.consumer_group is None else f"group {self.consumer_group}{of_table}"

    @property
    def former_name(self) -> str:
        """The name by which copies say that the former filter excludes them."""
        return f"former {self.name}"
