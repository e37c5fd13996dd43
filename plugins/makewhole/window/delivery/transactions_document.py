"""Describe transactions that wait for their end, and what settles them, as a document."""

from datetime import datetime
from typing import Any

from makewhole.model.incidents.settlements import SETTLES_PREPARED, abort_text
from makewhole.model.text import duration, moment
from makewhole.window.unsettled import OpenInTopic, PreparedInTable, Unsettled

_ENDS_ITSELF = "wait: its producer ends it, or the coordinator when it times out"


def transactions_document(unsettled: Unsettled, now: datetime) -> dict[str, Any]:
    """Return `prepared`, `open`, and `sinks`: where what loads tables with prepared transactions stands."""
    return {
        "prepared": [_prepared_document(item, now) for item in unsettled.prepared],
        "open": [_open_document(item, now) for item in unsettled.open],
        "sinks": [
            {
                "hop": sink.hop.name,
                "from": sink.hop.source,
                "to": sink.hop.target,
                "reader": sink.hop.reader,
                "topic": sink.topic,
                "reads_next": {str(partition): offset for partition, offset in sink.offsets.items()},
            }
            for sink in unsettled.sinks
        ],
    }


def _prepared_document(item: PreparedInTable, now: datetime) -> dict[str, Any]:
    transaction = item.transaction
    return {
        "point": item.point.name,
        **transaction.as_evidence(),
        "age_seconds": None if transaction.prepared is None else _age_ms(transaction.prepared, now) // 1000,
        "settled_by": SETTLES_PREPARED,
    }


def _open_document(item: OpenInTopic, now: datetime) -> dict[str, Any]:
    transaction = item.transaction
    since = transaction.last_timestamp_ms if transaction.started_at_ms is None else transaction.started_at_ms
    return {
        "point": item.point.name,
        "topic": item.point.topic,
        "partition": transaction.partition,
        "first_offset": transaction.first_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "transactional_id": transaction.transactional_id,
        "since": moment(since),
        "age_seconds": (int(now.timestamp() * 1000) - since) // 1000,
        "timeout_seconds": None if transaction.timeout_ms is None else transaction.timeout_ms // 1000,
        "is_hanging": transaction.is_hanging,
        "settled_by": _settles_open(item),
    }


def _settles_open(item: OpenInTopic) -> str:
    transaction = item.transaction
    if transaction.is_hanging:
        return f"it hangs: {abort_text(item.point.topic, transaction.partition, transaction.first_offset)}"
    timeout = "" if transaction.timeout_ms is None else f" ({duration(transaction.timeout_ms)})"
    return f"{_ENDS_ITSELF}{timeout}"


def _age_ms(since: datetime, now: datetime) -> int:
    return int((now - since).total_seconds() * 1000)
