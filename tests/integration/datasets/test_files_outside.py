"""Test what is known of the files of a table's snapshots while commits are added, taken back and expired."""

from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from makewhole.datasets.iceberg import files_outside as module
from makewhole.datasets.iceberg.files_outside import FileOutside, files_outside
from makewhole.tables.rows import OutsideReason
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_faults import describe, rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

Known = tuple[str, OutsideReason, int | None, str | None]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KNOWN", {})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests whose entries, also those that are deleted, were read."""
    paths: list[str] = []
    fetch = ManifestFile.fetch_manifest_entry

    def noted(manifest: ManifestFile, io: Any, discard_deleted: bool = True) -> Any:
        if not discard_deleted:
            paths.append(manifest.manifest_path)
        return fetch(manifest, io, discard_deleted)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", noted)
    return paths


def found(table: Table) -> list[Known]:
    return [known(outside) for outside in files_outside(table)]


def known(outside: FileOutside) -> Known:
    return outside.file.file_path, outside.reason, outside.snapshot, outside.operation


def of_a_fresh_process(table: Table) -> list[Known]:
    module._KNOWN.clear()
    return found(table)


def leave_orphan(table: Table, some: list[dict[str, Any]]) -> None:
    """Write a data file, and commit nothing."""
    content = pa.Table.from_pylist(some, schema=table.schema().as_arrow())
    with table.io.new_output(f"{table.location()}/data/lost.parquet").create() as file:
        pq.write_table(content, cast(Any, file))


def test_a_commit_has_nothing_read_again_of_those_before_it(shop: IcebergShop, read: list[str]) -> None:
    describe(shop)
    made = rows(shop)
    for number in range(4):
        shop.lake.append(TABLE, made[number : number + 1])
    leave_orphan(shop.lake.table(TABLE), made[6:])
    assert [reason for _, reason, _, _ in found(shop.lake.table(TABLE))] == [OutsideReason.UNLISTED]
    assert len(read) == len(set(read)) == 4

    read.clear()
    shop.lake.append(TABLE, made[4:5])
    table = shop.lake.table(TABLE)
    then = found(table)

    assert len(read) == 1
    assert then == of_a_fresh_process(table)


def test_files_of_a_snapshot_that_is_expired_are_orphans_as_a_fresh_process_says(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:3])
    shop.lake.table(TABLE).overwrite(shop.lake.table(TABLE).scan().to_arrow().slice(0, 1))
    assert {reason for _, reason, _, _ in found(shop.lake.table(TABLE))} == {OutsideReason.TAKEN_OUT}

    table = shop.lake.table(TABLE)
    newest = table.current_snapshot()
    assert newest is not None
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != newest.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    table = shop.lake.table(TABLE)
    then = found(table)

    assert {reason for _, reason, _, _ in then} <= {OutsideReason.UNLISTED, OutsideReason.TAKEN_OUT}
    assert then == of_a_fresh_process(table)


def test_a_commit_that_was_rolled_back_is_not_in_the_history_as_a_fresh_process_says(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:3])
    first = shop.lake.table(TABLE).current_snapshot()
    assert first is not None
    shop.lake.append(TABLE, made[3:5])
    assert found(shop.lake.table(TABLE)) == []

    shop.lake.table(TABLE).manage_snapshots().set_current_snapshot(snapshot_id=first.snapshot_id).commit()
    table = shop.lake.table(TABLE)
    then = found(table)

    assert [reason for _, reason, _, _ in then] == [OutsideReason.NOT_IN_HISTORY]
    assert then == of_a_fresh_process(table)
