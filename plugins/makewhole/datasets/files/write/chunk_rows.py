"""The rows of the keys of a chunk, as its actions see and change them, until the files are written."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from makewhole.datasets.arrow_types import NestedColumn
from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.open_dataset import RowInParquet, by_place, rows_of_keys
from makewhole.datasets.files.write.kept_beside import PlanFolder, RowBack, SeenKey
from makewhole.datasets.nested_values import row_images, row_texts
from makewhole.datasets.row_frames import times_of_rows, versions_of_rows
from makewhole.datasets.row_keys import key_texts, wanted_key
from makewhole.file_stores.store import FileEntry
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.places.dataset_place import MANIFESTS
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.items import RowItem
from makewhole.tables.receipts import ChunkId
from makewhole.tables.rows import TableRow

OWN = "makewhole-"
"""The names of the files that plans make begin so."""
NO_FOLDER = Refusal(
    RefusalCode.UNFIT,
    "a new file needs a folder with a marker of its own, and the folders of this dataset are columns. Have the writer "
    "load the rows again",
)


@dataclass
class FileRowsChanged:
    """Changes that a chunk makes in a file so far: the numbers of rows that go, and other values of rows by number; the
    actions that do it."""

    removed: set[int] = field(default_factory=set)
    updated: dict[int, dict[str, NestedColumn]] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)


@dataclass(kw_only=True)
class FileChunk:
    """The rows of a dataset as a chunk of a plan sees and changes them. `found` are by their loose keys; `files` those
    that they were found in; `added` are new rows by the file that they go into."""

    source: FileSource
    schema: pa.Schema
    point: TablePoint
    id: ChunkId
    kept: PlanFolder
    found: dict[str, list[RowInParquet]]
    files: frozenset[DataFile]
    added: dict[str, list[pa.Table]] = field(default_factory=dict)
    added_seqs: dict[str, set[int]] = field(default_factory=dict)
    changed: dict[DataFile, FileRowsChanged] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    back: list[RowBack] = field(default_factory=list)

    def seen(self, items: Iterable[RowItem]) -> tuple[SeenKey, ...]:
        """Return what is seen of the keys of items, before any of them is done."""
        rows_of_items = (
            (item, self.of_key(item.key, is_exact=False))
            for item in items
            if holdable(self.schema, self.point, [item.key])
        )
        return tuple(SeenKey(seq=item.seq, key=item.key, rows=digests_by_file(rows)) for item, rows in rows_of_items)

    def trial(self) -> "FileChunk":
        """Return the rows as they are, for something that is only tried."""
        return replace(
            self,
            found={key: list(rows) for key, rows in self.found.items()},
            added={},
            added_seqs={},
            changed={},
            effects=[],
            back=[],
        )

    def of_key(self, key: str, *, is_exact: bool) -> list[RowInParquet]:
        """Return the rows of a key by time and place, with images and places. `is_exact`: not those of an equal key in
        another spelling.

        Raises:
            RefusedError: the dataset cannot hold such a key.
        """
        loose, _ = wanted_key(self.schema, self.point, key, is_exact=False)
        rows = self.found.get(loose, [])
        if is_exact:
            exact, kinds = wanted_key(self.schema, self.point, key, is_exact=True)
            rows = [row for row in rows if key_texts(row.values, self.point, kinds)[0] == exact]
        return by_place(rows)

    def insert(self, seq: int, values: pa.Table) -> None:
        """Add a row, in a file of the chunk's own in the folder that its values name."""
        path = self._path_of(values)
        row = self._row(path, len(self.added.setdefault(path, [])), values)
        self.added[path].append(values)
        self.added_seqs.setdefault(path, set()).add(seq)
        self.found.setdefault(self._loose_key(values), []).append(row)
        self._keep(seq, EffectKind.INSERTED, row.row, before=None, after=row.row.image)

    def update(self, seq: int, row: RowInParquet, values: pa.Table, columns: Mapping[str, NestedColumn]) -> None:
        """Write a row again: as `values` it is seen from now on, `columns` are what changes in its file."""
        of_file = self._changes(seq, row)
        of_file.updated.setdefault(row.number, {}).update(columns)
        new = replace(self._row(row.data.path, row.number, values), data=row.data)
        self._drop(row)
        self.found.setdefault(self._loose_key(values), []).append(new)
        self._keep(seq, EffectKind.UPDATED, new.row, before=row.row.image, after=new.row.image)

    def take(self, seq: int, kind: EffectKind, row: RowInParquet, stays: str | None = None) -> None:
        """Take a row away; `stays` is the image of the row of its key that stays."""
        self._changes(seq, row).removed.add(row.number)
        self._drop(row)
        self._keep(seq, kind, row.row, before=row.row.image, after=stays)

    def _changes(self, seq: int, row: RowInParquet) -> FileRowsChanged:
        if row.data.path in self.added:
            raise RefusedError("a chunk does not change a row that it writes itself; divide the plan")
        of_file = self.changed.setdefault(row.data, FileRowsChanged())
        of_file.seqs.add(seq)
        return of_file

    def _drop(self, row: RowInParquet) -> None:
        for rows in self.found.values():
            rows[:] = [held for held in rows if (held.data, held.number) != (row.data, row.number)]

    def _path_of(self, values: pa.Table) -> str:
        folder = self.source.folder_of(values)
        name = f"{OWN}{self.id.plan}-{self.id.chunk:06}-{self.kept.digest}"
        if self.marker not in ("", MANIFESTS):
            if folder:
                raise ActionRefusedError(NO_FOLDER)
            folder = name  # of its own, in which its own marker is the nearest one
        return f"{folder}/{name}.parquet" if folder else f"{name}.parquet"

    @property
    def marker(self) -> str:
        """The name of what commits the files of the dataset, as in `DatasetPlace`."""
        return "" if self.point.dataset is None else self.point.dataset.marker

    def _row(self, path: str, number: int, values: pa.Table) -> RowInParquet:
        [text], [image] = row_texts(values), row_images(values)
        place = f"{path}:{number}"
        oid = self.source.number
        return RowInParquet(
            data=DataFile(file=FileEntry(path=path, size_bytes=0, modified_ms=0)),
            number=number,
            key=self._loose_key(values),
            time=times_of_rows(values, self.point)[0],
            version=versions_of_rows(values, self.point)[0],
            row=TableRow(table_oid=oid, ctid="", text=text, image=image, place=place),
            values=values,
        )

    def _loose_key(self, values: pa.Table) -> str:
        key = key_texts(values, self.point)[0]
        return "" if key is None else wanted_key(self.schema, self.point, key, is_exact=False)[0]

    def _keep(self, seq: int, kind: EffectKind, row: TableRow, *, before: str | None, after: str | None) -> None:
        effect = Effect(
            plan=self.id.plan,
            target=self.id.target,
            chunk=self.id.chunk,
            seq=seq,
            kind=kind,
            place=row.place or "",
            before=before,
            after=after,
        )
        self.effects.append(effect)


def load_rows(
    source: FileSource, point: TablePoint, chunk: ChunkId, kept: PlanFolder, keys: Iterable[str]
) -> FileChunk:
    """Return the rows of the keys of a chunk as they are now.

    Raises:
        RefusedError: the dataset lacks a column that the point names, or has no file.
        TransientError: a file cannot be read.
    """
    schema = source.schema()
    if schema is None:
        raise RefusedError(f"point {point.name}: {point.table} has no file")
    by_key: dict[str, list[RowInParquet]] = {}
    for rows in rows_of_keys(source, point, holdable(schema, point, keys), is_exact=False, has_images=True).values():
        for row in rows:
            by_key.setdefault(row.key, []).append(row)
    files = frozenset(row.data for rows in by_key.values() for row in rows)
    return FileChunk(source=source, schema=schema, point=point, id=chunk, kept=kept, found=by_key, files=files)


def digests_by_file(rows: Iterable[RowInParquet]) -> dict[str, str]:
    """Return digests of rows of one key, by the path of their file: what a rewritten file keeps of them is the same."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        texts.setdefault(row.data.path, []).append(row.row.text)
    return {path: hashlib.sha256("\0".join(sorted(of_file)).encode()).hexdigest() for path, of_file in texts.items()}


def holdable(schema: pa.Schema, point: TablePoint, keys: Iterable[str]) -> Sequence[str]:
    """Return those of the keys that the dataset can hold."""
    held: list[str] = []
    loose: set[str] = set()
    for key in keys:
        try:
            text, _ = wanted_key(schema, point, key, is_exact=False)
        except RefusedError:
            continue
        if text not in loose:  # two spellings of one key have one list of rows
            loose.add(text)
            held.append(key)
    return held


def columns_of(row: pa.Table, names: Iterable[str]) -> dict[str, Any]:
    """Return the columns of one row by name."""
    return {name: row.column(name).combine_chunks() for name in names}
