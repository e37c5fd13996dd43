"""Commit the files of chunks in datasets whose files count by a marker or a manifest, and refuse what cannot be."""

import json
import posixpath

from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.parquet_rows import count_rows
from makewhole.datasets.files.write.chunk_rows import OWN, FileChunk, FileRowsChanged
from makewhole.file_stores.store import FileStore
from makewhole.model.places.dataset_place import MANIFESTS
from makewhole.model.refusal import Refusal, RefusalCode

MARKED = Refusal(
    RefusalCode.UNFIT,
    "the files of this dataset count by a marker, or by a manifest, that their writer sets: a file of its own that is "
    "written again would not count. Have the writer load the rows again",
)


ON_ANOTHER_DISK = Refusal(
    RefusalCode.UNFIT,
    "the file lies on another disk than the folder of the dataset, behind a link or a mount: it cannot be replaced as "
    "a whole. Have the writer load the rows again, or have the dataset on one disk",
)


def commit_of(marker: str, path: str) -> tuple[str, bytes] | None:
    """Return what makes a file of a chunk's own count: a file beside it, and its content. None: it does by its name."""
    folder, name = posixpath.split(path)
    if not marker:
        return None
    if marker == MANIFESTS:
        named = MANIFESTS.replace("*", f"-{name.removesuffix('.parquet')}")
        return posixpath.join(folder, named), json.dumps([name]).encode()
    return posixpath.join(folder, marker), b""


def is_commit(path: str) -> bool:
    """Return whether a file of a chunk is such a marker or manifest, and holds no rows."""
    return posixpath.basename(path).startswith("_")


def not_committed(rows: FileChunk, *, is_whole: bool = True) -> set[int]:
    """Return the actions that would write a file again which its writer's marker or manifest commits: readers would
    see it no more, or not at once. `is_whole`: a file of a plan's own may be changed only if none of its rows is left.
    """
    if not rows.marker:
        return set()
    again = (
        changed
        for data, changed in rows.changed.items()
        if not (is_emptied(rows.source.store, data, changed) if is_whole else data.file.name.startswith(OWN))
    )
    return {seq for changed in again for seq in changed.seqs}


def not_written(rows: FileChunk, *, is_whole: bool = True) -> dict[int, Refusal]:
    """Return why actions write files that cannot be put in place so that readers see them. `is_whole`: as in
    `not_committed`."""
    store = rows.source.store
    written = [*rows.added_seqs.items(), *((data.path, changed.seqs) for data, changed in rows.changed.items())]
    away = {seq for path, seqs in written if not store.can_move_to(path) for seq in seqs}
    return dict.fromkeys(not_committed(rows, is_whole=is_whole), MARKED) | dict.fromkeys(away, ON_ANOTHER_DISK)


def is_emptied(store: FileStore, data: DataFile, changed: FileRowsChanged) -> bool:
    """Return whether no row is left of a file that a plan had made."""
    return data.file.name.startswith(OWN) and len(changed.removed) == count_rows(store, data)
