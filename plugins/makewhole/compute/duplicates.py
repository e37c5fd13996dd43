"""Why a key is there more than once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from makewhole.model.verdict import Cause

_IDENTITY = ("partition", "producer_id", "producer_epoch", "sequence")
_NO_PRODUCER = -1


def cause_of_rows(source_copies: int, elsewhere_at_source: int) -> Cause:
    """Of several rows in a store: one record was written repeatedly, or there are several records."""
    is_upstream = source_copies > 1 or (source_copies > 0 and elsewhere_at_source > 0) or elsewhere_at_source > 1
    return Cause.UPSTREAM_DUPLICATE if is_upstream else Cause.WRITTEN_BEFORE_COMMITTED


def cause_of_records(here: Sequence[Mapping[str, Any]], elsewhere: Iterable[Mapping[str, Any]]) -> Cause:
    """Of several committed records in a topic, by the identities of their producers.

    A producer without an id repeats unseen: where two copies have none, a retry looks the same as anything else. Of a
    copy that is only known by its place nothing is held against the others.
    """
    originals = [copy for copy in here if not copy["is_aborted"] and copy["replay_plan"] is None]
    originals += [_placed(copy) for copy in elsewhere if not copy["is_replay"]]
    known = [copy for copy in originals if copy["producer_id"] is not None]
    without_id = sum(copy["producer_id"] == _NO_PRODUCER for copy in known)
    if without_id and without_id + (len(originals) - len(known)) > 1:
        return Cause.RETRY_WITHOUT_IDEMPOTENCE
    identities = [tuple(copy[name] for name in _IDENTITY) for copy in known if copy["producer_id"] != _NO_PRODUCER]
    return Cause.SEQUENCE_REPEATED if len(set(identities)) < len(identities) else Cause.APPLICATION_RESEND


def _placed(copy: Mapping[str, Any]) -> dict[str, Any]:
    """A position as text is `partition:offset`."""
    partition = copy["place"].split(":")[0]
    return {**copy, "partition": int(partition) if partition.isdigit() else None}
