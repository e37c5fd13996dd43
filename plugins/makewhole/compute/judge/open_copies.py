"""Describe the copies of a key that cannot be read as committed yet, and the transactions that they wait for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from makewhole.compute.judge.key_copies import CopyFields
from makewhole.model.incident import Incident, IncidentKind


def open_evidence(open_copies: Sequence[CopyFields], transactions: Sequence[Incident]) -> dict[str, Any]:
    """Return the places that cannot be read as committed yet, and the transactions that they wait for."""
    places = sorted({copy["place"] for copy in open_copies})
    blocking = [transaction for transaction in transactions if any(_is_held_by(place, transaction) for place in places)]
    evidence: dict[str, Any] = {"open": places} if places else {}
    if blocking:
        evidence["transactions"] = [_transaction_fields(transaction) for transaction in blocking]
    return evidence


def _is_held_by(place: str, transaction: Incident) -> bool:
    partition, offset = (int(part) for part in place.split(":"))
    return partition == transaction.partition and offset >= (transaction.lo or 0)


def _transaction_fields(incident: Incident) -> dict[str, Any]:
    detail = incident.detail
    stamp = detail.get("last_timestamp_ms")
    has_time = isinstance(stamp, int) and 0 <= stamp < 253_402_300_800_000
    return {
        "partition": incident.partition,
        "first_offset": incident.lo,
        **{name: detail.get(name) for name in ("producer_id", "producer_epoch", "transactional_id", "state")},
        "since": datetime.fromtimestamp(stamp / 1000, UTC).isoformat() if has_time and stamp is not None else None,
        "is_hanging": incident.kind is IncidentKind.HANGING_TRANSACTION,
    }
