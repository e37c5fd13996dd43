"""Build reports of an audit: a sound one, with changes in single places."""

from dataclasses import replace
from typing import Any

from makewhole.audit.report import (
    AuditReport,
    BatchesReport,
    EndedReport,
    EpochSpan,
    OpenReport,
    PartitionReport,
    SequencesReport,
    SpreadReport,
    TailReport,
    TimesReport,
    TotalReport,
    TransactionsReport,
)
from makewhole.model.window import Accounting

NOW_MS = 1_800_000_000_000
NOTHING = TotalReport(batches=0, records=0, size_bytes=0)
ONE_EACH = SpreadReport(count=0, total=0, least=None, most=None, at_most=())
ENDED = EndedReport(count=0, records=0, without_data=0, longest_ms=0, records_each=ONE_EACH)
SETTINGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "2",
    "producer.id.expiration.ms": "86400000",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "transaction.max.timeout.ms": "900000",
    "unclean.leader.election.enable": "false",
}


def partition(**changes: Any) -> PartitionReport:
    """A partition of three replicas and a hundred records."""
    sound = PartitionReport(
        partition=0,
        leader=1,
        leader_epoch=0,
        replicas=(1, 2, 3),
        in_sync=(1, 2, 3),
        log_start=0,
        stable=100,
        end=100,
        failure=None,
        offsets=Accounting(span=100, data=100),
        expired=(),
        undecodable=(),
        undecodable_left_out=0,
        tail=TailReport(start=100, end=100, records=0, control=0, empty=0, undecodable=0),
        leader_epochs=(EpochSpan(epoch=0, start_offset=0, end_offset=100),),
        batches=10,
        records=100,
        size_bytes=1000,
        committed_transactions=0,
        aborted_transactions=0,
        producers=1,
        gaps=0,
        repeats=0,
        missing_heads=0,
    )
    return replace(sound, **changes)


def sequences(**changes: Any) -> SequencesReport:
    """One producer without a break."""
    sound = SequencesReport(
        producers=1,
        epochs=1,
        epoch_bumps=0,
        epoch_regressions=0,
        gaps=0,
        missing=0,
        repeats=0,
        repeated=0,
        missing_heads=0,
        wraps=0,
        breaks=(),
        breaks_left_out=0,
        listed=(),
        left_out=0,
    )
    return replace(sound, **changes)


def transactions(**changes: Any) -> TransactionsReport:
    """No transactions."""
    none = TransactionsReport(
        committed=ENDED,
        aborted=ENDED,
        open=(),
        open_refusal=None,
        longest=(),
        aborted_listed=(),
        aborted_left_out=0,
    )
    return replace(none, **changes)


def running(**changes: Any) -> OpenReport:
    """An open transaction that does not hang."""
    sound = OpenReport(
        partition=0,
        producer_id=5,
        producer_epoch=0,
        first_offset=90,
        last_timestamp_ms=NOW_MS - 5000,
        records=3,
        batches=1,
        transactional_id="id",
        state="Ongoing",
        started_at_ms=NOW_MS - 60_000,
        timeout_ms=900_000,
        is_hanging=False,
    )
    return replace(sound, **changes)


def report(*, settings: dict[str, str] | None = None, **changes: Any) -> AuditReport:
    """A topic of three replicas without a fault."""
    total = TotalReport(batches=10, records=100, size_bytes=1000)
    sound = AuditReport(
        version=1,
        topic="orders",
        topic_id="id",
        bootstrap="broker:9092",
        audited_at_ms=NOW_MS,
        elapsed_seconds=0.1,
        from_offset=None,
        is_crc_checked=True,
        brokers=3,
        offsets=Accounting(span=100, data=100),
        partitions=(partition(),),
        sequences=sequences(),
        transactions=transactions(),
        batches=BatchesReport(
            total=total,
            codecs={"lz4": total},
            kinds={"idempotent": total},
            records_per_batch=SpreadReport(count=10, total=100, least=10, most=10, at_most=((15, 10),)),
            bytes_per_batch=SpreadReport(count=10, total=1000, least=100, most=100, at_most=((127, 10),)),
        ),
        times=TimesReport(
            oldest_ms=NOW_MS - 1000,
            newest_ms=NOW_MS,
            late=NOTHING,
            latest_ms=0,
            without=NOTHING,
            log_append=NOTHING,
            width_ms=1000,
            rates=((NOW_MS - 1000, 50), (NOW_MS, 50)),
        ),
        settings={name: {"value": value, "source": "topic"} for name, value in (SETTINGS | (settings or {})).items()},
        settings_refusal=None,
        findings=(),
        guarantees=(),
    )
    return replace(sound, **changes)
