"""Explain each cause in a sentence, for the person who asks about one key."""

from collections.abc import Mapping

from makewhole.model.verdict import Cause

CAUSE_MEANINGS: Mapping[Cause, str] = {
    Cause.NEVER_PRODUCED: "the source has it, and no batch of the log does",
    Cause.ABORTED: "its only records belong to transactions that were aborted",
    Cause.PARTIAL_TRANSACTION: "its transaction wrote to this topic, too, and brought the key to another one alone",
    Cause.RETRY_WITHOUT_IDEMPOTENCE: "a producer without idempotence sent it again, as a retry does",
    Cause.APPLICATION_RESEND: "it was sent again, by another producer session or by the same one",
    Cause.SEQUENCE_REPEATED: "the broker took the same producer id, epoch and sequence twice",
    Cause.REDELIVERED: "compensation sent the record again for another store, and this one got it twice",
    Cause.CHANGED_BY_REPAIR: "compensation repaired the row for another hop, and this hop does not agree with it now",
    Cause.LATE_ORIGINAL: "the original came after compensation had written the record in its place",
    Cause.COMMITTED_BEFORE_WRITTEN: "its loader, by group or its own progress, passed its record: the target lacks it",
    Cause.NOT_YET_CONSUMED: "its loader, by its group or its own progress, has not reached its record yet",
    Cause.NOT_CONSUMED: "its loader has stood before its record for longer than a key may wait",
    Cause.NOT_COMMITTED: "its record is in or behind a transaction that has been open for longer than a key may wait",
    Cause.LOST_AFTER_TOPIC: "its record is in the topic, and the store lacks it",
    Cause.NEVER_WRITTEN: "the ledger has it, and the store that is fed from it does not",
    Cause.WRITTEN_BEFORE_COMMITTED: "one record was written several times, as when a consumer dies before it commits",
    Cause.SEVERAL_ROWS: "it has several rows, and one is to be made of all its records",
    Cause.UPSTREAM_DUPLICATE: "it is there several times upstream already",
    Cause.READ_UNCOMMITTED: "its record was aborted, and the consumer read it all the same",
    Cause.NOT_IN_SOURCE: "nothing upstream has it",
    Cause.LEFT_FILTER: "its latest version does not pass the hop's filter any more, so that the row should be gone",
    Cause.VALUE_DIFFERS: "both have it, and a compared column differs",
    Cause.RECORD_NOT_COUNTED: "its row is short of exactly one of its records",
    Cause.RESEND_COUNTED: "its row counts a record again that was sent again",
    Cause.SOURCE_CONTRADICTS: "the source has it with different values; which of them is right, a person must say",
    Cause.SOURCES_DISAGREE: "another source of its place has it with another value; which is right, a person must say",
    Cause.TARGET_CONTRADICTS: "beside its first record the topic has a replay with another value, which the source has",
    Cause.GONE_SINCE_CERTIFIED: "a certified window saw it in the store, and it is gone since: purged, most likely",
    Cause.ERASED_ON_PURPOSE: "it was deleted on purpose, as the store itself says",
    Cause.STALE_VERSION: "the target holds an older version, or what the latest version deletes",
    Cause.DELETED: "the source has a value, and the latest record in the topic deletes it",
    Cause.IN_FLIGHT: "it was under way when the window was cut, or sits behind an open transaction",
    Cause.IN_DOUBT: "a transaction that is prepared, and neither committed nor rolled back, may hold it in the store",
    Cause.TRUNCATED: "it was in the log, and was cut off when a new leader took over",
    Cause.TOPIC_RECREATED: "the topic was deleted and made again, and what it held last is not known",
    Cause.LEADER_CHANGED: "it is not in the log, and the leader changed: what the old one acknowledged may be gone",
    Cause.EXPIRED: "offsets of the window were deleted before they could be read; it may have been there",
    Cause.OLDER_THAN_LOG: "it is older than the log's first record: lost, or from before the topic? `start:` says it",
    Cause.ORDER_UNKNOWN: "several of its versions could be the latest, and no number orders them",
    Cause.SOURCE_GONE: "an earlier window left it to this one, and the source's copies are gone; run that window again",
    Cause.UNREADABLE_VALUE: "the key index does not know a value of it any more; run the window that saw it again",
    Cause.PLACEHOLDER: "its record has Debezium's placeholder in place of a value: there is nothing to compare",
    Cause.UNREADABLE_SOURCE: "the source could not be read",
    Cause.UNREADABLE_VERSION: "one of its versions is no number and no moment, or is not there: which is the latest?",
    Cause.FILTER_CHANGED: "`where` changed since its record was read, or its row left it; run the window of it again",
    Cause.HOPS_CHANGED: "the hops of the file changed: a former source brought it, or its window did not have this hop",
    Cause.COMPARE_CHANGED: "it differs only in columns that its window did not compare; run that window again",
    Cause.KEY_CONTINUES: "more of its records come after the window, so that its counts and sums are not complete",
    Cause.KEY_NOT_WHOLE: "records of it are, or may be, in another window or in what the log lost: no sum is known",
    Cause.NO_AMOUNT: "one of its records has no identity, or an amount that cannot be added exactly",
    Cause.UNREADABLE_RECORD: "a record of the window that could not be read may be of this key",
    Cause.COMPACTED: "compaction goes by Kafka's key, which is not known to be this key: it may have taken the record",
}


def explained_verdict(verdict: str, cause: str | None) -> str:
    """Return a verdict with its cause and what that means; a cause of another version has no sentence here."""
    if not cause:
        return verdict
    known = {known_cause.value: sentence for known_cause, sentence in CAUSE_MEANINGS.items()}
    return f"{verdict}: {cause}" + (f", {known[cause]}" if cause in known else "")
