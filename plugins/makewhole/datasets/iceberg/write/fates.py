"""Find out what became of chunks that were about to be committed when their runner was killed or lost its answer."""

from pyiceberg.table import Table

from makewhole.datasets.iceberg.catalog import load_table, translated
from makewhole.datasets.iceberg.write.commit import commit
from makewhole.datasets.iceberg.write.kept import Intent, Keeping
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import RefusedError, TransientError

ATTEMPT = "makewhole.attempt"
"""The name, in the summary of a snapshot, of the attempt that it is."""
_FENCE = "makewhole.fence"
_MOST_TRIES = 10


def was_committed(table: Table, intent: Intent) -> bool | None:
    """Return whether a chunk was committed; None: it is not known, for snapshots of that time were expired."""
    snapshots = table.metadata.snapshots
    if any(
        snapshot.summary is not None and snapshot.summary.additional_properties.get(ATTEMPT) == intent.attempt
        for snapshot in snapshots
    ):
        return True
    if intent.base is None:
        is_known = not snapshots or any(snapshot.parent_snapshot_id is None for snapshot in snapshots)
    else:
        is_known = any(snapshot.snapshot_id == intent.base for snapshot in snapshots)
    return False if is_known else None


def settled(connection: IcebergConnection, intent: Intent) -> Keeping:
    """Return what became of a chunk. One that was not committed cannot be from now on: where nothing came behind the
    snapshot that it is made of, an empty one does.

    Raises:
        RefusedError: it cannot be known.
        TransientError: other writers are faster each time.
    """
    for _ in range(_MOST_TRIES):
        table = load_table(connection, intent.table)
        is_committed = was_committed(table, intent)
        if is_committed is None:
            raise RefusedError(
                f"whether chunk {intent.receipt.chunk} of a plan was committed to {intent.table} cannot be known: its "
                "runner ended between the commit and its report, and the snapshots of that time were expired. Look "
                f"for its rows (attempt {intent.attempt} in makewhole.effects), reject the plan, and run the window "
                "again"
            )
        if is_committed:
            return Keeping.COMMITTED
        now = table.current_snapshot()
        if (None if now is None else now.snapshot_id) != intent.base:
            return Keeping.VOID
        with translated(intent.table):
            commit(table, properties={_FENCE: intent.attempt})
    raise TransientError(f"{intent.table} is written by others all the time; try again")
