"""Describe what weakens a claimed delivery: a setting as it is, as it should be, and what to write."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Weight of a weakness for the claim: it does not hold, it holds as long as nothing else fails, or nothing here
    says whether it holds."""

    BROKEN = "broken"
    RISK = "risk"
    UNKNOWN = "unknown"


class Fault(StrEnum):
    """The rows of docs/faults.md that show what a weakness leads to, by their anchors."""

    OPEN_TRANSACTION = "3-an-open-transaction-holds-the-stable-offset"
    COMPACTION = "6-compaction"
    EXPIRED = "8-records-expire-before-they-are-read"
    UNCLEAN_ELECTION = "9-an-unclean-election-cuts-acknowledged-records-off"
    ACKS_OF_ONE = "10-acks1-and-the-leader-dies-before-its-followers-have-the-records"
    NO_IDEMPOTENCE = "12-a-retry-without-idempotence"
    SENT_AGAIN = "13-an-application-sends-again-after-a-restart"
    STATE_EXPIRED = "14-a-retry-after-the-producers-state-expired"
    COMMITTED_FIRST = "21-a-consumer-that-commits-then-processes"
    PROCESSED_FIRST = "22-a-consumer-that-processes-then-commits"
    STORE_FORGETS = "27-a-store-that-forgets-what-it-committed"
    FAR_BEHIND = "36-a-loader-that-is-far-behind"
    NO_GROUP = "43-a-consumer-group-that-does-not-exist"
    RESEND_IN_PART = "53-a-resend-into-a-topic-whose-store-takes-some-of-it"
    GROUP_AHEAD = "70-a-consumer-group-that-is-ahead-of-its-sink"
    FAILED_SENDS = "83-failed-sends-that-the-application-ignores"
    OLD_RECORDS = "86-a-retry-by-an-idempotent-producer-that-sends-old-records"
    TOO_FEW_IN_SYNC = "87-too-few-replicas-in-sync-and-a-send-that-fails"
    SEEK = "90-a-reader-that-seeks"
    READ_UNCOMMITTED = "95-a-reader-of-uncommitted-records-and-transactions-that-are-tried-again"
    COMMITTED_AFTER = "113-a-copier-that-commits-its-offsets-after-its-transaction"
    UNSENT = "85-a-producer-that-is-never-flushed"
    REWRITTEN_FILES = "153-files-that-are-written-again-under-another-name"
    SNAPSHOTS_EXPIRED = "144-icebergs-sink-whose-files-are-listed-twice"

    @property
    def row(self) -> str:
        """The number of the row."""
        return self.value.split("-", 1)[0]

    @property
    def place(self) -> str:
        """The row as a place in the documentation."""
        return f"docs/faults.md#{self.value}"


@dataclass(frozen=True, kw_only=True)
class Weakness:
    """One of them: which `setting` of which `thing` it is, its value, the value that it should have, why, what to write
    (a command, a line or a statement), and the row that shows what happens otherwise."""

    severity: Severity
    thing: str
    setting: str
    value: str
    expected: str
    because: str
    remedy: str
    fault: Fault


_ORDER = tuple(Severity)


def worst_first(weaknesses: Iterable[Weakness]) -> tuple[Weakness, ...]:
    """Return weaknesses, each once: what is broken first, then by thing and setting."""
    unique = dict.fromkeys(weaknesses)
    return tuple(sorted(unique, key=lambda item: (_ORDER.index(item.severity), item.thing, item.setting)))
