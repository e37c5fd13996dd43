"""What compensation will do: frozen, ordered, hashed before anybody is asked to approve it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from makewhole.model.pipeline import Remedy
from makewhole.model.refusal import Refusal, RefusalCode

LINEAGE_PREFIX = "makewhole-"
"""How the names of all lineage headers begin; no other header may begin so."""

PLAN_HEADER = "makewhole-plan"
"""The record header that names the plan which wrote a record."""

WINDOW_HEADER = "makewhole-window"
"""The record header that names the plan's window, as `<pipeline>/<window>`."""

SEQ_HEADER = "makewhole-seq"
"""The record header that holds the number of the action in its plan."""

ORIGIN_HEADER = "makewhole-origin"
"""The record header that says where the record comes from: `<topic>/<partition>/<offset>`, `ledger` or `template`."""

CHUNK_HEADER = "makewhole-chunk"
"""The record header that holds the number of the chunk in its plan."""

REVERSES_HEADER = "makewhole-reverses"
"""The record header that names the copy which a reversal takes back: `point/table/place` or
`point/topic/partition/offset`."""

ABSENT_AT = "absent_at"
"""The field of `Action.before` that names the points which did not have the key when the plan was made, if any did."""

REPEATS = "repeats"
"""The field of `Action.before` that names the topic of which a redelivery repeats a record, or an upsert writes one."""

UNKNOWN_TO = "unknown_to"
"""The field of `Action.before` that names the points which feed a table and lack a key whose rows there are taken back:
where one of them has it by now, its rows stay."""

ERASABLE = "erasable"
"""The field of `Action.before` that names the stores which a record reaches and which name the keys that were
erased."""
ONCE = "once"
"""The field of `Action.before` that names the points to which a redelivery would add what one of them has already."""

PASSED = "passed"
"""The field of `Action.before` that names the hops whose loaders must be past the key's records: one that
is not will load one by itself, beside what the action brings."""

RECORDS = "records"
"""The field of `Action.before` with the places of these records, each as `partition:offset`, joined by commas."""

PUTS_ASIDE = "puts_aside"
"""The field of `Action.before` that names the tables of which the plan moves the key's rows aside before the record is
sent: their loaders add a row for it."""

DISPUTED_BY = "disputed_by"
"""The field of `Action.before` that names the hops whose findings dispute the value by which the action goes: by what
stands at their `ends`, or at their `starts` where the source contradicts itself; with `doubts` only those count that
do not know it."""

ACCEPTED_BY = "accepted_by"
"""The field of `Action.before` that names the hops whose findings, once a person accepts them, keep the rows that the
action would change."""

GROUPS = "groups"
"""The field of `Action.before` that names the only consumer groups that may read what is redelivered to its source."""

CANNOT_BE_READ = "cannot be read"
"""Words in the reason of an action that is refused because a record which came since may be of its key: whether the key
is lost is not known then."""

_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})
"""The characters that COPY does not leave as they are (PostgreSQL, COPY, "Text Format")."""


def copy_line(fields: Iterable[str | int]) -> bytes:
    """Return a row as PostgreSQL's COPY writes it, in the text format."""
    return ("\t".join(str(field).translate(_ESCAPES) for field in fields) + "\n").encode()


class PlanState(StrEnum):
    FROZEN = "frozen"
    REFUSED = "refused"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    REJECTED = "rejected"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, kw_only=True)
class Action:
    """One item of a plan.

    `seq` is also the number of its row in the plan's payload file; `chunk` is the transaction at its target that it
    belongs to, counted from 0. `target` names the point that is written. `before` describes what is at the target now,
    as far as the remedy touches it.
    """

    seq: int
    remedy: Remedy
    hop: str
    target: str
    key: str
    key_hash: str
    chunk: int = 0
    before: Mapping[str, Any] = field(default_factory=dict)

    @property
    def before_text(self) -> str:
        """`before` as canonical JSON: ASCII, ordered by name, the same on every machine."""
        return json.dumps(dict(self.before), sort_keys=True, separators=(",", ":"))

    def line(self) -> bytes:
        """The action as PostgreSQL's COPY writes it, in the text format: what the journal holds, byte for byte."""
        texts = (self.remedy.value, self.hop, self.target, self.key, self.key_hash, self.before_text)
        return copy_line((self.seq, self.chunk, *texts))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`id` is `<pipeline>-<window>-<first 12 of sha256>`; `payload_uri` names the Parquet file with the payloads.

    `undoes` is the id of the plan whose work this one takes back.
    """

    id: str
    pipeline: str
    window: int
    revision: int
    sha256: str
    payload_uri: str | None
    counts: Mapping[str, int]
    state: PlanState
    reason: str | None = None
    undoes: str | None = None

    @property
    def actions(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The proof that a chunk happened, as found at the target itself. `place` is where: a marker or a receipt row."""

    plan: str
    target: str
    chunk: int
    actions: int
    place: str


@dataclass(frozen=True, kw_only=True)
class ErasedSince:
    """The keys that tombstones erased since their window was judged, each with what says so. `not_known`: why that
    cannot be known of any key."""

    erased_at: Mapping[str, str] = field(default_factory=dict)
    not_known: str | None = None

    def refusals(self, store: str, keys: Iterable[str]) -> dict[str, Refusal]:
        """Return why these keys must not be written to a store, by key."""
        if self.not_known is not None:
            return dict.fromkeys(keys, Refusal(RefusalCode.NOT_KNOWN, f"{self.not_known}; run the window again"))
        return {
            key: Refusal(RefusalCode.ERASED, f"{store}: {self.erased_at[key]}") for key in keys if key in self.erased_at
        }


def count_remedies(actions: Iterable[Action]) -> Mapping[str, int]:
    """Count the actions of each remedy, by name."""
    return dict(sorted(Counter(action.remedy.value for action in actions).items()))
