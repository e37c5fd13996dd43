"""Describe transactions in doubt: a table's system keeps what they wrote, and does not know yet whether it counts. So
do files of a dataset that no marker commits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from makewhole.model.incidents.sentences import prepared_transaction_text
from makewhole.model.refusal import Refusal, RefusalCode

_SHOWN = 10
_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class TransactionInDoubt:
    """A transaction that was prepared for a two-phase commit, and neither committed nor rolled back. Whether a row that
    it inserted is there cannot be seen; a row that it changed shows its old values.

    `prepared` None: the server is a standby, which shows only that a transaction is in progress at its primary, by its
    number (`gid`). `tables`: those that it wrote to. `is_writing` False: it wrote nothing to the table that was asked
    about, and only locks rows of it. `is_file`: it is a file that no marker commits, by its path, and when it was
    written; `is_unreadable`: one that counts and cannot be read. `keys`: those of the keys asked for that it may hold,
    or None.
    """

    gid: str
    owner: str
    prepared: datetime | None
    tables: tuple[str, ...] = ()
    is_writing: bool = True
    is_file: bool = False
    is_unreadable: bool = False
    keys: frozenset[str] | None = None

    def may_hold(self, key: str) -> bool:
        """Return whether a key that was asked for may be in it."""
        return self.keys is None or key in self.keys

    def as_evidence(self) -> dict[str, Any]:
        """Return what a finding or an incident says of it."""
        return {
            "gid": self.gid,
            "owner": self.owner,
            "prepared": None if self.prepared is None else self.prepared.astimezone(UTC).isoformat(),
            "tables": list(self.tables),
            **({"file": True} if self.is_file else {}),
            **({"unreadable": True} if self.is_unreadable else {}),
        }


@dataclass(frozen=True, kw_only=True)
class KeysInDoubt:
    """The keys of which a row may have been changed, deleted or locked by a transaction that has not ended, and the
    transactions in doubt that wrote to the table."""

    transactions: tuple[TransactionInDoubt, ...] = ()
    keys: frozenset[str] = frozenset()


def together(*lists: Sequence[TransactionInDoubt]) -> tuple[TransactionInDoubt, ...]:
    """Return the transactions of several lists, each once with all keys that it may hold, the oldest first."""
    by_name: dict[tuple[str, datetime | None], TransactionInDoubt] = {}
    for item in (item for transactions in lists for item in transactions):
        known = by_name.setdefault((item.gid, item.prepared), item)
        both = None if known.keys is None or item.keys is None else known.keys | item.keys
        by_name[item.gid, item.prepared] = replace(known, keys=both)
    return tuple(sorted(by_name.values(), key=lambda item: (item.prepared or _FIRST, item.gid)))


def evidence_of_doubt(transactions: Sequence[TransactionInDoubt]) -> dict[str, Any]:
    """Return what a finding says of the transactions that may hold its key: the oldest of them, and their number where
    there are more."""
    more = {"in_doubt_number": len(transactions)} if len(transactions) > _SHOWN else {}
    return {"in_doubt": [item.as_evidence() for item in transactions[:_SHOWN]], **more}


def refusal_by_doubt(held: str, transactions: Sequence[TransactionInDoubt]) -> Refusal:
    """Return why a key is not written or sent beside transactions in doubt. `held`: what of it they may hold."""
    if transactions and transactions[0].is_unreadable:
        return Refusal(
            RefusalCode.IN_DOUBT,
            f"{held} may be in {prepared_transaction_text(transactions[0].as_evidence())}: it would be there twice "
            "once that is restored. Have it written again, or move it out of the dataset, then run this window again",
        )
    if transactions and transactions[0].is_file:
        return Refusal(
            RefusalCode.IN_DOUBT,
            f"{held} may be in {prepared_transaction_text(transactions[0].as_evidence())}, which no marker commits: it "
            "would be there twice once one does. Have its job end, or remove the file, then run this window again",
        )
    if transactions and transactions[0].prepared is None:
        return Refusal(
            RefusalCode.IN_DOUBT,
            f"{held} may be held by {prepared_transaction_text(transactions[0].as_evidence())}: it would be there "
            "twice, or overwritten, once that is committed. Name the primary in the connection, or settle what is "
            "prepared there (`prepared_transaction` in the runbook), then run this window again",
        )
    first = prepared_transaction_text(transactions[0].as_evidence()) if transactions else "of another session"
    more = f" and {len(transactions) - 1} more" if len(transactions) > 1 else ""
    return Refusal(
        RefusalCode.IN_DOUBT,
        f"{held} may be held by the prepared transaction {first}{more}: it would be there twice, or overwritten, once "
        "that is committed. Settle it (COMMIT PREPARED or ROLLBACK PREPARED, see `prepared_transaction` in the "
        "runbook), then run this window again",
    )
