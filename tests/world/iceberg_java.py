"""Change Iceberg tables by Iceberg's own library, in a JVM of its own: what pyiceberg reads and cannot write."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from makewhole.model.closing import ClosingContext
from tests.world.iceberg_lake import Lake
from tests.world.rest_catalogue import start_java


class JavaIceberg(ClosingContext):
    """The library over the catalogue of a lake in a file of SQLite. A context manager."""

    def __init__(self, lake: Lake) -> None:
        self._gateway, self._process = start_java()
        java: Any = self._gateway.jvm
        self._iceberg, self._java = java.org.apache.iceberg, java
        self._catalog = self._iceberg.jdbc.JdbcCatalog()
        self._catalog.setConf(java.org.apache.hadoop.conf.Configuration())
        settings = {
            "uri": f"jdbc:sqlite:{lake.folder}/catalog.db",
            "warehouse": str(lake.folder / "warehouse"),
            "jdbc.schema-version": "V1",
        }
        self._catalog.initialize("default", settings)

    def close(self) -> None:
        """End the JVM, and with it its lock on the catalogue."""
        self._catalog.close()
        self._gateway.shutdown()
        self._process.kill()
        self._process.wait(10)

    def raise_format(self, name: str, version: int) -> None:
        """Raise the version of a table's format."""
        self._table(name).updateProperties().set("format-version", str(version)).commit()

    def delete_rows(self, name: str, path: str, numbers: Sequence[int]) -> None:
        """Commit a deletion vector that takes rows of a data file away."""
        table, iceberg = self._table(name), self._iceberg
        files = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).format(iceberg.FileFormat.PUFFIN).build()
        functions = self._java.org.apache.hadoop.thirdparty.com.google.common.base.Functions
        writer = iceberg.deletes.BaseDVFileWriter(files, functions.constant(None))
        for number in numbers:
            writer.delete(path, number, table.spec(), None)
        writer.close()
        change = table.newRowDelta()
        for file in writer.result().deleteFiles():
            change.addDeletes(file)
        change.commit()

    def replace_files(self, name: str, new: Path, records: int) -> int:
        """Put one file in the place of all of a table, as a compaction does; return its snapshot."""
        table = self._table(name)
        file = self._iceberg.DataFiles.builder(table.spec()).withPath(f"file://{new}").withFormat("PARQUET")
        change = table.newRewrite()
        tasks = table.newScan().planFiles().iterator()
        while tasks.hasNext():
            change.deleteFile(tasks.next().file())
        change.addFile(file.withFileSizeInBytes(new.stat().st_size).withRecordCount(records).build())
        change.commit()
        table.refresh()
        snapshot: int = table.currentSnapshot().snapshotId()
        return snapshot

    def _table(self, name: str) -> Any:
        return self._catalog.loadTable(self._iceberg.catalog.TableIdentifier.parse(name))
