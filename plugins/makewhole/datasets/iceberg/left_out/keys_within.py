"""Find the keys that files which are gone or do not decode may hold, by what the table itself says of these files."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import ManifestGroupPlanner, Table

from makewhole.datasets.iceberg.predicates import of_keys
from makewhole.datasets.iceberg.read_file import FileReader, SpoiltRows
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.model.points import TablePoint
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.reading import UnreadableFile


class KeysWithin:
    """Asks of each key alone whether a file may hold it: a verdict depends on no other key that is looked up."""

    def __init__(self, table: Table, schema: Schema, point: TablePoint, keys: Sequence[str]) -> None:
        self._table, self._schema = table, schema
        self._wanted = {key: of_keys(schema, point, WantedKeys.of_texts(point, [key])) for key in keys}

    def of_file(self, rows: SpoiltRows) -> set[str]:
        """Return the keys that a data file may hold by its statistics in the manifest."""
        return {
            key
            for key, where in self._wanted.items()
            if _InclusiveMetricsEvaluator(self._schema, where, include_empty_files=True).eval(rows.listed.file)
        }

    def of_groups(self, some: Sequence[SpoiltRows], files: FileReader) -> set[str]:
        """Return the keys that groups of rows of one file may hold by its own statistics."""
        listed, groups = some[0].listed, {rows.group for rows in some}
        return {key for key, where in self._wanted.items() if groups & {*files.groups_with(listed, where)}}

    def of_manifest(self, manifest: ManifestFile) -> set[str]:
        """Return the keys that files of a manifest may hold by the partitions of these; all where columns may have had
        other names in the view than the table has now, by which its partitions are known."""
        if self._schema.schema_id != self._table.metadata.current_schema_id:
            return {*self._wanted}
        keys = set[str]()
        for key, where in self._wanted.items():
            planner = ManifestGroupPlanner(self._table.metadata, self._table.io, where)
            if planner._build_manifest_evaluator(manifest.partition_spec_id)(manifest):
                keys.add(key)
        return keys


def in_doubt(
    point: TablePoint,
    within: KeysWithin,
    files: FileReader,
    unreadable: Mapping[str, UnreadableFile],
    spoilt: Sequence[SpoiltRows],
    manifests: Mapping[str, ManifestFile],
) -> Iterator[TransactionInDoubt]:
    """Yield the files that cannot be read, each with those of the keys that it may hold. `unreadable`: what each path
    is; `manifests`: those that are gone."""
    by_path = defaultdict[str, list[SpoiltRows]](list)
    for rows in spoilt:
        by_path[rows.path].append(rows)
    held = {path: within.of_manifest(manifest) for path, manifest in manifests.items()}
    for path, some in by_path.items():
        is_whole = any(rows.group is None for rows in some)
        parts = [within.of_file(rows) for rows in some] if is_whole else [within.of_groups(some, files)]
        held[path] = set[str]().union(*parts)
    for path, keys in sorted(held.items()):
        yield TransactionInDoubt(
            gid=path,
            owner="",
            prepared=unreadable[path].written,
            tables=(point.table,),
            is_file=True,
            is_unreadable=True,
            keys=frozenset(keys),
        )
