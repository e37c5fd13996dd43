"""Hold the durable state of a case, and fingerprint it: the same for states that a recovery cannot distinguish."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from tests.crash.states.lake_state import LakeState

Rows = list[dict[str, Any]]
_DIGEST = re.compile(r"(?<![0-9a-f])([0-9a-f]{64}|[0-9a-f]{12})(?![0-9a-f])")
_TABLE_NUMBER = re.compile(r'(\\?"table_oid\\?": ?)\d+')
"""Each worker has tables of its own."""
_NORMALISED = {
    # A recovery comes under the same name as the runner before it: it takes the lease over, held or free.
    ("lease", "expires_at"): "held or free",
    # Only their order is asked for, and a later runner always has a later one.
    ("lease", "epoch"): "an epoch",
    ("receipt", "lease_epoch"): "an epoch",
    ("fence", "lease_epoch"): "an epoch",
    # Where a row came to lie depends on what was rolled back before; a later chunk never asks for it.
    ("effect", "place"): "a place",
    # Transactions that were rolled back have used numbers up; they are never read.
    ("quarantine", "id"): "a number",
    ("removal", "id"): "a number",
    ("key_merge", "id"): "a number",
    # Which topic it is, and where in it: whether committed records stand there is kept instead, see `_positions`.
    ("replayed_position", "topic_id"): "a topic",
    ("replayed_position", "first_offset"): "an offset",
    ("replayed_position", "last_offset"): "an offset",
    # Where the topic ended when the plan was begun: the topic is used again and again.
    ("plan", "log_ends"): "offsets",
}


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record that a read_committed consumer sees."""

    partition: int
    key: str
    value: str
    timestamp_ms: int
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Durable:
    """`marker` -1001: there is none. `transaction`: `none` (never begun), `idle`, or `open`. `held_back`: how many
    offsets are behind the stable one. `written`: the partitions that hold anything of the case, be it undone."""

    journal: Mapping[str, Rows]
    target: Mapping[str, Rows]
    records: tuple[Record, ...]
    marker: int
    has_marker_topic: bool
    transaction: str
    held_back: int
    written: tuple[int, ...]
    files: tuple[str, ...]
    lakes: LakeState | None
    names: Sequence[tuple[str, str]]

    @property
    def fingerprint(self) -> str:
        """The same for states that a recovery cannot distinguish."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:10]

    @property
    def work(self) -> str:
        """The fingerprint of all but the leases: a runner takes one before it asks whether there is anything to do."""
        return replace(self, journal={**self.journal, "lease": []}).fingerprint

    @property
    def receipts(self) -> Mapping[str, int]:
        """How many receipts each store has."""
        of_lakes = {store: len(receipts) for store, receipts in self.lakes.receipts.items()} if self.lakes else {}
        return {"warehouse": len(self.target.get("receipt", ())), **of_lakes}

    @cached_property
    def text(self) -> str:
        """All of it, without what differs from case to case, as JSON."""
        return json.dumps(
            {
                "journal": {
                    table: self._without_names(plain_rows(table, rows)) for table, rows in self.journal.items()
                },
                "target": {table: self._without_names(plain_rows(table, rows)) for table, rows in self.target.items()},
                "records": self._without_names(json.dumps((record.key, record.headers)) for record in self.records),
                "marker": self.marker,
                "marker topic": self.has_marker_topic,
                "transaction": self.transaction,
                "written": self.written,
                "files": self._without_names(self.files),
                "lakes": self._without_names(self.lakes.texts if self.lakes else ()),
            },
            sort_keys=True,
        )

    def _without_names(self, texts: Iterable[str]) -> list[str]:
        """Put words in place of names, and only then sort: a name is another one in each case."""
        named = (reduce(lambda text, name: text.replace(*name), self.names, text) for text in texts)
        plain = (_TABLE_NUMBER.sub(r"\1<number>", text) for text in named)
        return sorted(_DIGEST.sub("<digest>", text) for text in plain)

    @property
    def summary(self) -> str:
        """The state in a few words, for people."""
        plans, leases = self.journal["plan"], self.journal["lease"]
        if not plans:
            return f"no plan, {len(self.files)} files"
        chunks = [f"{row['target']}/{row['chunk']}" for row in self.journal["chunk"]]
        decided = sum(row["outcome"] is not None for row in self.journal["action"])
        lease = leases[0]["expires_at"] if leases else "no lease"
        receipts = sum(self.receipts.values())
        return (
            f"{plans[0]['state']}, {lease}, transaction {self.transaction}, marker {max(self.marker, 0)}, "
            f"{len(self.records)} records, {receipts} receipts, journal: {' '.join(chunks) or 'no chunk'}, "
            f"{decided} outcomes"
        )


def plain_rows(table: str, rows: Rows) -> Iterator[str]:
    """Yield rows as JSON, without what no runner asks for."""
    for row in rows:
        plain = {
            column: _NORMALISED.get((table, column), value) if value is not None else None
            for column, value in row.items()
        }
        yield json.dumps(plain, sort_keys=True)
