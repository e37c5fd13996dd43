"""Name a view of an Iceberg table: one snapshot of it, with the schema by which its columns are named."""

import json
from dataclasses import asdict, dataclass

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from makewhole.model.errors import RefusedError, TransientError


class OtherTableError(RefusedError):
    """The table of a point was replaced by another one of its name."""


@dataclass(frozen=True, kw_only=True)
class SnapshotView:
    """A table (`uuid`: one that is made again has another), its snapshot (None: it has no rows yet), the number of that
    among the commits of the table, and the schema. `without`: the paths of its files that cannot be read; it has no
    rows of a data file among them, or with deletes among them, or that a manifest among them lists."""

    uuid: str
    snapshot: int | None
    sequence: int
    schema: int
    without: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The view as a text, which travels to readers and is kept."""
        known = {name: value for name, value in asdict(self).items() if name != "without" or value}
        return json.dumps(known, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> "SnapshotView":
        """Return the view of a text."""
        known = json.loads(text)
        return cls(**{**known, "without": tuple(known.get("without", ()))})

    @classmethod
    def known(cls, text: str) -> "SnapshotView | None":
        """Return the view of a text; None: it is of a table of another kind."""
        try:
            return cls.of_text(text)
        except (ValueError, TypeError):
            return None

    def schema_in(self, table: Table) -> Schema:
        """Return the schema by which columns are named."""
        return table.schemas()[self.schema]

    def snapshot_in(self, table: Table, name: str) -> Snapshot | None:
        """Return the snapshot; None: the table had no rows.

        Raises:
            OtherTableError: another table has the name now.
            TransientError: the snapshot is there no longer.
        """
        require_table(table, name, self.uuid)
        if self.snapshot is None:
            return None
        snapshot = table.snapshot_by_id(self.snapshot)
        if snapshot is None:
            raise TransientError(
                f"snapshot {self.snapshot} of {name} was expired while it was read; read again, and keep snapshots for "
                "longer than a window takes"
            )
        return snapshot


def require_table(table: Table, name: str, uuid: str) -> None:
    """Check that a table is the one that a window was opened with.

    Raises:
        OtherTableError: it is another one of its name.
    """
    now = str(table.metadata.table_uuid)
    if now != uuid:
        raise OtherTableError(
            f"{name} is another table than when the window was opened: it has the uuid {now} now, and had {uuid}. Put "
            f"the former one back under its name; or, if it was replaced on purpose, write `uuid: {now}` at the point. "
            "Then run this window again"
        )


def view_now(table: Table) -> SnapshotView:
    """Return the view of a table as it is now."""
    snapshot = table.current_snapshot()
    return SnapshotView(
        uuid=str(table.metadata.table_uuid),
        snapshot=None if snapshot is None else snapshot.snapshot_id,
        sequence=0 if snapshot is None else snapshot.sequence_number or 0,
        schema=table.metadata.current_schema_id,
    )
