"""Describe the actions of a plan: what each does to a key, what is asked for again before, and what it writes."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import msgspec

from makewhole.model.hops import Remedy
from makewhole.model.plan import copy_line
from makewhole.model.verdict import Cause, Finding, Verdict, says_nothing_of_values


class StoredFields:
    """The fields of a dataclass that is stored as JSON: one that has its default is left out."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that are stored, by name."""
        kind: Any = type(self)
        defaults = _defaults(kind)
        return {name: value for name, value in vars(self).items() if value != defaults[name]}


@cache
def _defaults(kind: type) -> Mapping[str, object]:
    return {field.name: field.default for field in dataclasses.fields(kind)}


def canonical_text(fields: Mapping[str, Any]) -> str:
    """Return fields as canonical JSON: ASCII, ordered by name, the same on every machine."""
    return _CANONICAL.encode(fields)


_CANONICAL = json.JSONEncoder(
    check_circular=False,
    sort_keys=True,
    separators=(",", ":"),
    default=lambda inner: inner.fields if isinstance(inner, StoredFields) else vars(inner),
)


@dataclass(frozen=True, kw_only=True)
class DisputedBy(StoredFields):
    """The hops whose findings dispute the value by which an action goes: by what stands at their `ends`, or at their
    `starts` where the source contradicts itself. With `doubts` only those count that do not know it."""

    ends: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    doubts: bool = False

    def counts(self, finding: Finding) -> bool:
        """Return whether an open finding of another window, made after the plan, disputes the value."""
        is_at_start = finding.cause is Cause.SOURCE_CONTRADICTS and finding.hop in self.starts
        if finding.hop not in self.ends and not is_at_start:
            return False
        return finding.verdict is Verdict.UNDECIDABLE if self.doubts else not says_nothing_of_values(finding)


@dataclass(frozen=True, kw_only=True)
class Before(StoredFields):
    """Facts known before an action of any remedy: what is asked for again right before it is done, and where its
    payload comes from.

    `place`: of its target. `absent_at`: the points which did not have the key when the plan was made. `once`: the
    points to which a record that is sent would add what one of them has already. `groups`: the only consumer groups
    that may read what is redelivered to its source; None: it goes elsewhere. `repeats`: the topic of which a redelivery
    repeats a record, or an upsert writes one. `erasable`: the stores which a record reaches and which name the keys
    that were erased. `unknown_to`: the points which feed a table and lack a key whose rows there are taken back: where
    one of them has it by now, its rows stay. `passed`: the hops whose loaders must be past the key's records: one that
    is not will load one by itself, beside what the action brings; `records`: these, each as `partition:offset`, joined
    by commas. `resent_to`: the hops whose loaders must be past the records of the key that earlier plans sent, in every
    topic that they read. `puts_aside`: the tables of which the plan moves the key's rows aside before the record is
    sent: their loaders add a row for it. `accepted_by`: the hops whose findings, once a person accepts them, keep the
    rows that the action would change. `rows`: the places of the key's rows when they were read. `payload_from`: what
    has kept the payload; `origin`: `PayloadExtra.origin`.
    """

    remedy: ClassVar[Remedy]

    place: str
    absent_at: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    repeats: str = ""
    erasable: tuple[str, ...] = ()
    unknown_to: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    records: str = ""
    resent_to: tuple[str, ...] = ()
    puts_aside: tuple[str, ...] = ()
    disputed_by: DisputedBy | None = None
    accepted_by: tuple[str, ...] = ()
    rows: tuple[str, ...] | None = None
    payload_from: str | None = None
    origin: str | None = None


@dataclass(frozen=True, kw_only=True)
class BeforeProduce(Before):
    """Facts known before a record is produced that only a ledger has."""

    remedy = Remedy.PRODUCE


@dataclass(frozen=True, kw_only=True)
class BeforeRedeliver(Before):
    """Facts known before a record is sent again."""

    remedy = Remedy.REDELIVER


@dataclass(frozen=True, kw_only=True)
class BeforeUpsert(Before):
    """Facts known before a row is written. `locks_table`: other writers wait, as nothing else keeps keys unique."""

    remedy = Remedy.UPSERT

    locks_table: bool = False


@dataclass(frozen=True, kw_only=True)
class BeforeQuarantine(Before):
    """Facts known before rows are moved aside."""

    remedy = Remedy.QUARANTINE


@dataclass(frozen=True, kw_only=True)
class BeforeReverse(Before):
    """Facts known before a copy is taken back by an event: `of` which place and what that is, and which `copy` there,
    as in `ReversedCopy`. `reversal_key_hash`: of the event's own key, where its topic is judged."""

    remedy = Remedy.REVERSE

    of: str = ""
    of_identity: str = ""
    copy: Mapping[str, Any] | None = None
    reversal_key_hash: str | None = None


@dataclass(frozen=True, kw_only=True)
class BeforeRestore(Before):
    """Facts known before an effect is taken back: the number of the action that it `undoes`, and its `kind`."""

    remedy = Remedy.RESTORE

    undoes: int
    kind: str


_DECODERS: Mapping[str, msgspec.json.Decoder[Before]] = {
    kind.remedy: msgspec.json.Decoder(kind)
    for kind in (BeforeProduce, BeforeRedeliver, BeforeUpsert, BeforeQuarantine, BeforeReverse, BeforeRestore)
}


def read_before(remedy: str, text: str) -> Before:
    """Return what is written as `before_text` in an action of this remedy."""
    return _DECODERS[remedy].decode(text)


@dataclass(frozen=True, kw_only=True)
class Action:
    """One item of a plan.

    `seq` is also the number of its row in the plan's payload file; `chunk` is the transaction at its target that it
    belongs to, counted from 0. `target` names the point that is written. `before` describes what is at the target now,
    as far as the remedy touches it.
    """

    seq: int
    hop: str
    target: str
    key: str
    key_hash: str
    before: Before
    chunk: int = 0

    @property
    def remedy(self) -> Remedy:
        return self.before.remedy

    @property
    def before_text(self) -> str:
        """`before` as canonical JSON."""
        return canonical_text(self.before.fields)

    def line(self) -> bytes:
        """The action as PostgreSQL's COPY writes it, in the text format: what the journal holds, byte for byte."""
        texts = (self.remedy.value, self.hop, self.target, self.key, self.key_hash, self.before_text)
        return copy_line((self.seq, self.chunk, *texts))


@dataclass(frozen=True, kw_only=True)
class PayloadExtra(StoredFields):
    """Fields of a payload beside its record. `origin`: where this comes from, as in `ORIGIN_HEADER`."""

    origin: str | None = None


@dataclass(frozen=True, kw_only=True)
class ProduceExtra(PayloadExtra):
    """Fields of the payload of a record that is produced. `partition_count`: the partitions that the topic had when
    `partition` was chosen by key."""

    partition_count: int | None = None


@dataclass(frozen=True, kw_only=True)
class Payload:
    """Content that one action writes. Fields of `extra` for rows of tables are in `makewhole.tables.items`."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    extra: PayloadExtra = PayloadExtra()

    @property
    def size_bytes(self) -> int:
        """Approximate size in memory."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + len(canonical_text(self.extra.fields))
