"""Answer what no dataset can be asked: it is no ledger, keeps no sink's progress in rows, and names no erased keys.

Each format's tables are these and what the format itself does.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NoReturn

from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.errors import RefusedError
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.tables.progress import ProgressRows
from makewhole.tables.rows import LedgerReading, LedgerRecord
from makewhole.tables.shape import TableShape
from makewhole.tables.tables import Ability


class DatasetTables:
    """The part that the datasets of a connection have in common, whatever their format (of `Tables`)."""

    abilities = frozenset({Ability.REPAIRED})

    def lags_behind(self, moment: datetime) -> str | None:
        return None

    def seen_now(self) -> str:
        _refuse_ledger()

    def keys_not_seen(
        self, shape: TableShape, keys: Sequence[str], seen: str, every_before: datetime | None = None
    ) -> list[str]:
        _refuse_ledger()

    def erased_keys(self, point: TablePoint, keys: Iterable[str]) -> set[str]:
        return set()

    def read_progress(
        self, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
    ) -> dict[int, ProgressRows]:
        raise RefusedError("a dataset keeps no sink's progress in rows")

    def weaknesses(self, shape: TableShape, claim: TableClaim) -> Sequence[Weakness]:
        """Return that nothing keeps a second row of a key out of a dataset, where only that would."""
        if not claim.is_keyed or claim.overwrites:
            return []
        return [
            Weakness(
                severity=Severity.BROKEN,
                thing=f"dataset {shape.point.table}",
                setting="progress",
                value="not in the file",
                expected="the offsets of what writes it, with the rows",
                because="a dataset has no unique keys: what dies between its files and its offset writes rows twice",
                remedy="progress: files, or control_topic: …, at its hop, and a sink that works so; or `delivery: "
                "at-least-once`",
                fault=Fault.REWRITTEN_FILES,
            )
        ]


class OpenDataset:
    """The part that the open dataset of a point has in common with others, whatever its format (of `OpenTable`)."""

    locks_for_new_rows = False

    def ledger_record(self, key: str, reading: LedgerReading) -> LedgerRecord | None:
        _refuse_ledger()

    def ledger_records(self, keys: Sequence[str], reading: LedgerReading) -> Mapping[str, LedgerRecord]:
        _refuse_ledger()

    def erased(self, keys: Sequence[str]) -> set[str]:
        return set()

    def require_quarantine_possible(self) -> None:
        """Do nothing: no dataset reaches into another one."""


def _refuse_ledger() -> NoReturn:
    raise RefusedError("a dataset cannot be a ledger")
