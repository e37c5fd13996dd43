"""Compute when Kafka may delete a record, from the topic's settings and its log start."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from makewhole.kafka.offsets import TopicLog
from makewhole.model.connection import KafkaConnection

_FOREVER = "-1"
_LONGEST_MS = 10_000 * 366 * 86_400_000
_LATEST_YEAR = datetime(9999, 1, 1, tzinfo=UTC)


class RecordRetention(StrEnum):
    """Fate of a record in the log."""

    DELETED = "deleted"  # the log starts behind the record
    EXPIRES = "expires"  # at a known time
    KEPT = "kept"  # no setting deletes it for its age or for space
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Time when a record may be deleted. `at` is the earliest moment, for `EXPIRES` only: Kafka deletes whole segments,
    once the newest record in them is old enough. `may_be_earlier`: the topic is limited in size, too."""

    fate: RecordRetention
    at: datetime | None = None
    may_be_earlier: bool = False

    @property
    def urgency(self) -> tuple[int, datetime]:
        """Sort key, the most urgent first: by time, then not known, deleted, kept."""
        order = (RecordRetention.EXPIRES, RecordRetention.NOT_KNOWN, RecordRetention.DELETED, RecordRetention.KEPT)
        return order.index(self.fate), self.at or _LATEST_YEAR


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Settings that decide how long a topic keeps its records. `keeps` None: never deleted for its age."""

    log_starts: Mapping[int, int]
    keeps: timedelta | None
    is_limited_in_size: bool
    is_known: bool = True

    def deadline(self, partition: int, offset: int, time: datetime | None) -> Deadline:
        """Return the deadline of the record at a position. `time` is its timestamp; None: Kafka takes the segment's."""
        if offset < self.log_starts.get(partition, 0):
            return Deadline(fate=RecordRetention.DELETED)
        if not self.is_known:
            return Deadline(fate=RecordRetention.NOT_KNOWN)
        if self.keeps is None:
            fate = RecordRetention.NOT_KNOWN if self.is_limited_in_size else RecordRetention.KEPT
            return Deadline(fate=fate, may_be_earlier=self.is_limited_in_size)
        if time is None:
            return Deadline(fate=RecordRetention.NOT_KNOWN, may_be_earlier=self.is_limited_in_size)
        return Deadline(
            fate=RecordRetention.EXPIRES, at=_after(time, self.keeps), may_be_earlier=self.is_limited_in_size
        )


def read_retention(connection: KafkaConnection, topic: str, *, patience_seconds: float | None = None) -> Retention:
    """Return the retention of a topic as it is now; `is_known` is False where its settings may not be read.

    Raises:
        ConfigurationError: the topic does not exist.
        TransientError: the brokers do not answer.
    """
    with TopicLog(connection, topic, patience_seconds=patience_seconds) as log:
        starts = log.starts()
        settings = {name: setting.value for name, setting in log.settings().settings.items()}
    policies = (settings.get("cleanup.policy") or "").split(",")
    by_age, by_size = settings.get("retention.ms"), settings.get("retention.bytes")
    deletes = "delete" in policies
    return Retention(
        log_starts={partition: end.offset for partition, end in starts.items()},
        keeps=None
        if not deletes or by_age in (None, _FOREVER)
        else timedelta(milliseconds=min(int(by_age), _LONGEST_MS)),
        is_limited_in_size=deletes and by_size not in (None, _FOREVER),
        is_known=bool(settings),
    )


def _after(time: datetime, keeps: timedelta) -> datetime:
    try:
        return time + keeps
    except OverflowError:
        return _LATEST_YEAR
