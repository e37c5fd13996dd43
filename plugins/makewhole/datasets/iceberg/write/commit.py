"""Commit a change of a table as one snapshot, if nothing was committed since the table was loaded.

Pyiceberg tries a commit again that another writer came before, on top of what that one wrote, as often as the table's
own properties say. Here nothing is tried again: what is written was decided by what was read. So the change is handed
to the catalogue with the snapshot that it is made of.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import AssertTableUUID

from makewhole.datasets.iceberg.data_files import listed_files
from makewhole.datasets.iceberg.warehouse import require_own_locations
from makewhole.datasets.iceberg.write.partitions import written_files
from makewhole.model.errors import CorruptionError


def commit(
    table: Table,
    *,
    added: Iterable[pa.Table] = (),
    adopted: Sequence[DataFile] = (),
    removed: Iterable[DataFile] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
    is_merging: bool = False,
) -> int | None:
    """Add rows, table by table, and files that are there (`adopted`), and remove whole files, however
    often these are listed, in one snapshot with properties of its own; return its number. None: another commit came
    before, and nothing was changed. `is_merging`: small lists of files become larger ones, where nothing is removed.

    Raises:
        RefusedError: the table names a class that decides where its files stand, or a row is in no partition.
        CorruptionError: the snapshot would list other files than it should; it was not committed.
        pyiceberg's own errors, of which `CommitStateUnknownException` leaves open whether it was done.
    """
    require_own_locations(table)
    transaction = Transaction(table, autocommit=False)
    gone, files = list(removed), [*written_files(table, added, table.name()[-1]), *adopted]
    update = transaction.update_snapshot(snapshot_properties=dict(properties))
    with update.merge_append() if is_merging else update.overwrite() as change:
        for file in files:
            change.append_data_file(file)
        for file in gone:
            change.delete_data_file(file)
    _require_only(transaction, table, files, gone)
    requirements = (*transaction._requirements, AssertTableUUID(uuid=table.metadata.table_uuid))
    try:
        table.catalog.commit_table(table, requirements, transaction._updates)
    except CommitFailedException:
        return None
    snapshot = transaction.table_metadata.current_snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def _require_only(
    transaction: Transaction, table: Table, added: Sequence[DataFile], removed: Sequence[DataFile]
) -> None:
    """Check that a snapshot lists what the one before did, without what is removed and with what is added."""
    name = table.name()[-1]
    before = Counter(listed.file.file_path for listed in listed_files(table, table.current_snapshot(), name))
    for file in removed:
        del before[file.file_path]
    before.update({file.file_path for file in added})
    staged = transaction.table_metadata.current_snapshot()
    if Counter(listed.file.file_path for listed in listed_files(table, staged, name)) != before:
        raise CorruptionError(
            f"{name}: a commit would change the list of other files than its own (a file may be listed twice in one "
            "manifest); nothing was written. Rewrite the manifests (Spark: `call system.rewrite_manifests`), and try "
            "again"
        )
