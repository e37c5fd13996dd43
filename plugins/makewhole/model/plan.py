"""Plans of compensation: frozen, ordered, hashed before anybody is asked to approve it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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

TIME_HEADER = "makewhole-timestamp"
"""The record header that holds the timestamp of the original, in ms, where the record was sent with the time of its
sending: retention would have deleted it before it was read."""

REVERSES_HEADER = "makewhole-reverses"
"""The record header that names the copy which a reversal takes back: `point/table/place` or
`point/topic/partition/offset`."""

CANNOT_BE_READ = "cannot be read"
"""Words in the reason of an action that is refused because a record which came since may be of its key: whether the key
is lost is not known then."""

_ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
"""The characters that COPY does not leave as they are (PostgreSQL, COPY, "Text Format")."""


def copy_line(fields: Iterable[str | int]) -> bytes:
    """Return a row as PostgreSQL's COPY writes it, in the text format."""
    return ("\t".join(_escaped(str(field)) for field in fields) + "\n").encode()


def _escaped(text: str) -> str:
    """Replace the backslash first. A text is searched for each, which is quicker than `str.translate`."""
    for character, escaped in _ESCAPES.items():
        text = text.replace(character, escaped)
    return text


class PlanState(StrEnum):
    FROZEN = "frozen"
    REFUSED = "refused"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    REJECTED = "rejected"
    RUNNING = "running"
    DONE = "done"


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
