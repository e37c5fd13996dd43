"""Decide which files of a dataset count: all that readers look at, those beside a marker, or those in a manifest."""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from makewhole.file_stores.store import FileEntry, FileStore
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.places.dataset_place import MANIFESTS

KEPT_BESIDE = "_makewhole"
"""The folder in which repairs keep what they did, and rows as they were."""
_COPYING = "._COPYING_"
_BEING_WRITTEN = (".parquet", ".inprogress", ".tmp", _COPYING)
_ATTEMPTS = ("_temporary", ".spark-staging", ".hive-staging")
_CHECKSUM = ".crc"
_PREFIX, _SUFFIX = MANIFESTS.split("*")


def is_hidden(path: str) -> bool:
    """Return whether no reader of datasets looks at a file: a part of its path begins with a dot or, without being a
    column's (`_day=1`), with an underscore."""
    is_any = any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/"))
    return is_any or path.endswith(_COPYING)


def is_left_over(path: str) -> bool:
    """Return whether a file that no reader of datasets looks at has rows by its path: it lies among those of attempts
    (`_temporary`), or has a name that files have while they are written. What repairs keep in `_makewhole` has none."""
    *folders, name = path.split("/")
    if not is_hidden(path) or name.endswith(_CHECKSUM) or KEPT_BESIDE in folders:
        return False
    return any(folder.startswith(_ATTEMPTS) for folder in folders) or any(part in name for part in _BEING_WRITTEN)


def is_manifest(path: str) -> bool:
    """Return whether a file is a manifest, in a folder that readers look at."""
    folder, _, name = path.rpartition("/")
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX) and not (folder and is_hidden(folder))


@dataclass(frozen=True, kw_only=True)
class CountingFiles:
    """The files of a listing that count; those that readers would look at and that nothing commits; and those that a
    manifest names and that are not there, without a size, as of the time at which that was written."""

    counting: Sequence[FileEntry]
    uncommitted: Sequence[FileEntry] = ()
    gone: Sequence[FileEntry] = ()


def counting_files(store: FileStore, files: Sequence[FileEntry], marker: str) -> CountingFiles:
    """Return which files of a listing count. `marker`: as in `DatasetPlace`.

    Raises:
        RefusedError: a manifest names what is no file of the dataset.
        TransientError: one is no list, or was written again.
    """
    seen = [file for file in files if not is_hidden(file.path)]
    if not marker:
        return CountingFiles(counting=seen)
    if marker == MANIFESTS:
        listed = {path: file for file in files if is_manifest(file.path) for path in _listed(store, file)}
        there = {file.path for file in files}
        return CountingFiles(
            counting=[file for file in files if file.path in listed],
            uncommitted=[file for file in seen if file.path not in listed],
            gone=[
                FileEntry(path=path, size_bytes=0, modified_ms=listed[path].modified_ms)
                for path in sorted(listed.keys() - there)
            ],
        )
    marked = {file.path.rpartition("/")[0]: file for file in files if file.name == marker}
    is_committed = [_is_committed(file, marked) for file in seen]
    pairs = list(zip(seen, is_committed, strict=True))
    return CountingFiles(
        counting=[file for file, counts in pairs if counts],
        uncommitted=[file for file, counts in pairs if not counts],
    )


def _listed(store: FileStore, manifest: FileEntry) -> Iterator[str]:
    """Yield the paths of the files that a manifest names, which are below its folder."""
    where = f"{store.root}/{manifest.path}"
    try:
        with store.open(manifest.path) as file:
            named = json.load(file)
    except FileNotFoundError:
        raise TransientError(f"{where} went while it was read; read again") from None
    except ValueError:
        named = None
    if store.find(manifest.path) != manifest:
        raise TransientError(f"{where} was written again, or went, while it was read; read again")
    if not isinstance(named, list):
        raise TransientError(
            f"{where} is no list of files: what it commits is not known. Its writer has to put it in place as a whole"
        )
    folder = posixpath.dirname(manifest.path)
    for name in named:
        path = posixpath.normpath(posixpath.join(folder, name)) if isinstance(name, str) and name else ""
        if (
            not path
            or not path.startswith(f"{folder}/" if folder else "")
            or path.startswith(("/", ".."))
            or ":" in path
        ):
            raise RefusedError(f"{where} names {json.dumps(name)}, which is no path of a file below its folder")
        yield path


def _is_committed(file: FileEntry, marked: Mapping[str, FileEntry]) -> bool:
    """Return whether the marker of the nearest folder that has one is there, and is not older than the file: what is
    written later belongs to a job that has not ended."""
    marker = next((marked[folder] for folder in _folders_up(file.path) if folder in marked), None)
    return marker is not None and file.modified_ms <= marker.modified_ms


def _folders_up(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
