"""Read the findings of a window batch by batch, however many there are."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from makewhole.journal.findings.window_findings import JudgedFinding, judged_finding
from makewhole.journal.statements import scope
from makewhole.model.verdict import Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection, rows_in_pieces, statements_of

_run = statements_of("finding")

BATCH = 5_000
"""So many findings are in memory at a time."""

_ROWS_OF_A_FETCH = 1_000


@dataclass(frozen=True, kw_only=True)
class StoredFindings:
    """The findings of a revision of a window, with their outcomes, as the journal has them."""

    window: Window

    def batches(self, journal: PgConnection, size: int = BATCH) -> Iterator[list[JudgedFinding]]:
        """Yield all findings by key hash, at least `size` at a time: those of a key come together."""
        batch: list[JudgedFinding] = []
        for _, of_key in groupby(self._rows(journal, "findings_by_key"), key=lambda item: item.finding.key_hash):
            batch += of_key
            if len(batch) >= size:
                yield batch
                batch = []
        if batch:
            yield batch

    def kinds(self, journal: PgConnection) -> set[tuple[str, Verdict]]:
        """Return the hops of the findings, each with its verdicts."""
        kinds = _run(journal, "kinds_of_findings", **scope(self.window))
        return {(hop, Verdict(verdict)) for hop, verdict in kinds}

    def in_order(self, journal: PgConnection) -> Iterator[JudgedFinding]:
        """Yield all findings by hop, verdict and key."""
        yield from self._rows(journal, "findings")

    def _rows(self, journal: PgConnection, statement: str) -> Iterator[JudgedFinding]:
        for rows in rows_in_pieces(journal, "finding", statement, scope(self.window), _ROWS_OF_A_FETCH):
            yield from map(judged_finding, rows)
