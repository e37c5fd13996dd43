"""Describe what is said of one business key on one hop, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """The verdicts. `pending` and `undecidable` are *not known*: never rounded to yes or no.

    `conflict`: one side holds the key with different values, so that no comparison can say which is right.
    `vanished`: a certified window saw the key in the store, and it is gone. `erased`: the store says that it was
    deleted on purpose. Neither is a loss.
    `before_baseline`: the other side does not reach back to when the key was there; nothing is said of it.
    """

    MATCHED = "matched"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    UNEXPECTED = "unexpected"
    MISMATCHED = "mismatched"
    CONFLICT = "conflict"
    VANISHED = "vanished"
    ERASED = "erased"
    PENDING = "pending"
    UNDECIDABLE = "undecidable"
    BEFORE_BASELINE = "before_baseline"

    @property
    def is_gap(self) -> bool:
        return self in GAPS

    @property
    def is_finding(self) -> bool:
        """Return whether a key with it is listed with its evidence."""
        return self not in (Verdict.MATCHED, Verdict.BEFORE_BASELINE)


GAPS = (Verdict.MISSING, Verdict.DUPLICATE, Verdict.UNEXPECTED, Verdict.MISMATCHED, Verdict.CONFLICT)
REPAIRABLE = (*GAPS, Verdict.VANISHED)
"""The verdicts that a pipeline file may name a remedy for; what has vanished is brought back only where it does."""

DIFFERING = (Verdict.MISSING, Verdict.MISMATCHED, Verdict.CONFLICT)
"""The verdicts that a key may have of which the source has its record in another window alone."""

DISPUTING = (Verdict.MISMATCHED, Verdict.UNEXPECTED, Verdict.UNDECIDABLE, Verdict.CONFLICT)
"""The verdicts that dispute what the end of a hop holds of a key; one whose source contradicts itself also what that
holds."""

NOT_KNOWN = (Verdict.PENDING, Verdict.UNDECIDABLE)


class Duplicates(StrEnum):
    """Name what becomes of keys with several records in a topic that nothing feeds: they are reported, or no window
    with them is certified."""

    REPORT = "report"
    REFUSED = "refused"


class Repeat(StrEnum):
    """Name what the several records of a key in such a topic are."""

    RESEND = "resend"  # the same values again
    CONFLICT = "conflict"  # other values, and no version says which is newer
    UNKNOWN = "unknown"  # nothing is compared, or a compared value is not known


class Cause(StrEnum):
    """The mechanism behind a verdict, as far as the evidence carries."""

    NEVER_PRODUCED = "never_produced"  # in the ledger, in no batch of the log
    ABORTED = "aborted_transaction"  # its only copies in the log belong to aborted transactions
    PARTIAL_TRANSACTION = "partial_transaction"  # its transaction wrote to the topic, and brought it to another alone
    RETRY_WITHOUT_IDEMPOTENCE = "retry_without_idempotence"  # repeated, producer id -1
    APPLICATION_RESEND = "application_resend"  # repeated under another producer session or sequence
    SEQUENCE_REPEATED = "sequence_repeated"  # the same (producer id, epoch, sequence) twice
    LATE_ORIGINAL = "late_original"  # the original came after compensation had written the record in its place
    REDELIVERED = "redelivered"  # compensation sent the record again for another store, and this one got it twice
    CHANGED_BY_REPAIR = "changed_by_repair"  # a repair for another hop changed the row that this hop compares
    COMMITTED_BEFORE_WRITTEN = "committed_before_written"  # the group's offset is past a record the target lacks
    NOT_YET_CONSUMED = "not_yet_consumed"  # the group's offset has not reached it, yet settle time is over
    NOT_CONSUMED = "not_consumed"  # the same, and for longer than a key may wait
    NOT_COMMITTED = "not_committed"  # in or behind a transaction open for longer than a key may wait
    LOST_AFTER_TOPIC = "lost_after_topic"  # the store lacks it; no consumer group says more
    NEVER_WRITTEN = "never_written"  # in the ledger, not in the store that is fed from it
    WRITTEN_BEFORE_COMMITTED = "written_before_committed"  # one record, several rows; or several copies in a topic
    SEVERAL_ROWS = "several_rows"  # of one key, where one row is to be made of all its records
    UPSTREAM_DUPLICATE = "upstream_duplicate"  # several records, several rows
    READ_UNCOMMITTED = "read_uncommitted"  # the row's record was aborted, or one row's of several
    NOT_IN_SOURCE = "not_in_source"
    LEFT_FILTER = "left_filter"  # the latest version in the source does not pass the hop's filter any more
    VALUE_DIFFERS = "value_differs"
    RECORD_NOT_COUNTED = "record_not_counted"  # a row of many records is short of exactly one of them
    RESEND_COUNTED = "resend_counted"  # a row of many records counts one again that was sent again
    SOURCE_CONTRADICTS = "source_contradicts_itself"  # the source has the key with different values
    SOURCES_DISAGREE = "sources_disagree"  # two sources of one place have the key with different values
    TARGET_CONTRADICTS = "target_contradicts_itself"  # a replay stands beside an original with another value
    GONE_SINCE_CERTIFIED = "gone_since_certified"  # a certified window saw it in the store; purged, most likely
    ERASED_ON_PURPOSE = "erased_on_purpose"  # by what `erased` of the store says
    STALE_VERSION = "stale_version"  # the target holds an older version, or what the latest version deletes
    DELETED = "deleted"  # the latest version in the target topic is a tombstone, the source has a value
    IN_FLIGHT = "in_flight"  # inside the settle time, or in an open transaction
    IN_DOUBT = "in_doubt"  # a transaction that is prepared, and neither committed nor rolled back, may hold it
    TRUNCATED = "truncated"  # an earlier window saw it in the log, then a new leader cut that part off
    TOPIC_RECREATED = "topic_recreated"  # the topic was deleted and made again; what it held last is not known
    LEADER_CHANGED = (
        "leader_changed"  # not in the log, and the leader changed: acknowledged records may have gone with it
    )
    EXPIRED = "expired"  # offsets of the window were deleted before they could be read: it may have been there
    OLDER_THAN_LOG = "older_than_log"  # from before the log's first record: lost, or from before the topic?
    ORDER_UNKNOWN = "order_unknown"  # versions without a number in several partitions, or of one time: which is latest?
    SOURCE_GONE = "source_gone"  # handed over by an earlier window, and the source's copies are nowhere any more
    UNREADABLE_VALUE = "unreadable_value"  # what one side holds can be read nowhere any more
    PLACEHOLDER = "placeholder"  # a record has a placeholder of the capture in place of a compared value
    UNREADABLE_SOURCE = "unreadable_source"
    UNREADABLE_VERSION = "unreadable_version"  # a version of the key is no number and no moment, or of another kind
    FILTER_CHANGED = "filter_changed"  # the file's `where` is another one than when the record was read
    HOPS_CHANGED = "hops_changed"  # a source of before brought it, or the windows before did not have this hop
    COMPARE_CHANGED = "compare_changed"  # it differs in columns alone that the window of its row did not compare
    KEY_CONTINUES = "key_continues"  # more records of the key come after the window: its sums are not complete
    KEY_NOT_WHOLE = "key_not_whole"  # records of the key are, or may be, where this window cannot add them up
    NO_AMOUNT = "no_amount"  # a record has no identity, or an amount that cannot be added exactly
    UNREADABLE_RECORD = "unreadable_record"  # a record of the window that could not be read may be of this key
    COMPACTED = "compacted"  # compaction, which goes by another key than this, may have taken its record


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Any verdict but matched. `evidence` is JSON-able: positions, row places, producer identity, copies, columns."""

    hop: str
    key: str
    key_hash: str
    verdict: Verdict
    cause: Cause
    evidence: Mapping[str, Any] = field(default_factory=dict)


def says_nothing_of_values(finding: Finding) -> bool:
    """Return whether a finding of another window only could not know if the key was there: a repair has its record."""
    return finding.verdict is Verdict.UNDECIDABLE and not finding.evidence.get("target_copies")


@dataclass(frozen=True, kw_only=True)
class HopCounts:
    """Distinct keys of a hop by verdict, with the numbers that cross-check them.

    `source_keys` = matched + missing + mismatched + conflict + vanished + erased + duplicate-with-source + pending +
    undecidable + before_baseline + unexpected-with-source; those of these that have no source key are counted beside
    it. `source_rows`/`target_rows` count copies.
    """

    source_keys: int = 0
    source_rows: int = 0
    target_rows: int = 0
    matched: int = 0
    missing: int = 0
    duplicate: int = 0
    mismatched: int = 0
    conflict: int = 0
    vanished: int = 0
    erased: int = 0
    unexpected: int = 0
    pending: int = 0
    undecidable: int = 0
    before_baseline: int = 0
    extra_copies: int = 0

    @property
    def judged(self) -> int:
        known = self.matched + self.missing + self.duplicate + self.mismatched + self.conflict + self.unexpected
        return known + self.vanished + self.erased

    @property
    def window_keys(self) -> int:
        """The keys that `limits.share` is a share of: those of the source, and those that are judged without one in the
        window, such as an older window's whose row came a second time."""
        return max(self.source_keys, self.judged)
