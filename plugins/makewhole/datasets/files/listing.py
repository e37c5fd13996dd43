"""List the files of a dataset: which of them count, what their folders and their names say of their rows."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote

from makewhole.datasets.files.committed import counting_files, is_hidden, is_left_over, is_manifest
from makewhole.file_stores.store import FileEntry, FileStore
from makewhole.model.errors import TransientError

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_SAFE = " -_.,;@()!$&+~"
_RANGE = re.compile(r"(.+)\+(\d+)\+(\d+)\+(\d+)(\.[^/+]*)?")
_LISTED_MOST = 8


@dataclass(frozen=True, kw_only=True, order=True)
class OffsetsNamed:
    """The offsets that a file should hold by its name, the last among them: `orders+3+0000001000+0000001999.parquet`,
    as the sinks of Kafka Connect write it. A filter may have left some out."""

    topic: str
    partition: int
    first: int
    last: int


@dataclass(frozen=True, kw_only=True, order=True)
class DataFile:
    """A file of a dataset, as it was listed. It travels to the task that reads it."""

    file: FileEntry

    @property
    def path(self) -> str:
        return self.file.path

    @cached_property
    def folders(self) -> Mapping[str, str | None]:
        """The columns that the names of its folders hold (`dt=2026-11-01`), with their texts."""
        parts = [part.split("=", 1) for part in self.path.split("/")[:-1] if "=" in part]
        return {unquote(name): None if text == _NULL_FOLDER else unquote(text) for name, text in parts}

    @cached_property
    def offsets_named(self) -> OffsetsNamed | None:
        """The offsets that its name says; None: it says none."""
        match = _RANGE.fullmatch(self.file.name)
        if match is None:
            return None
        topic, partition, first, last, _ = match.groups()
        return OffsetsNamed(topic=topic, partition=int(partition), first=int(first), last=int(last))


def folder_name(name: str, text: str | None) -> str:
    """Return the name of a folder that holds the value of a column."""
    return f"{quote(name, safe=_SAFE)}={_NULL_FOLDER if text is None else quote(text, safe=_SAFE)}"


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The files of a dataset at one moment: those that count, by path; those that a writer has not committed; those
    that would count and are no whole Parquet files; those that no reader looks at, with rows by their path; and those
    that a manifest names, and that are not there."""

    files: tuple[DataFile, ...]
    uncommitted: tuple[DataFile, ...] = ()
    unreadable: tuple[DataFile, ...] = ()
    left_over: tuple[DataFile, ...] = ()
    gone: tuple[DataFile, ...] = ()


def listing_now(store: FileStore, marker: str = "") -> Listing:
    """Return the files of a dataset as they are at one moment: a listing goes folder by folder, so that it is of one
    moment where the next one has the same files that readers look at, and commit others. Those that are hidden, as
    writers have while they write, may change all the time. `marker`: as in `DatasetPlace`.

    Raises:
        RefusedError: a manifest names what is no file of the dataset.
        TransientError: the files change all the time, a manifest is no list, or the system does not answer.
    """
    listed = store.list()
    for _ in range(_LISTED_MOST):
        known = counting_files(store, listed, marker)
        again = store.list()
        if _in_sight(again, marker) == _in_sight(listed, marker):
            return Listing(
                files=tuple(DataFile(file=file) for file in known.counting),
                uncommitted=tuple(DataFile(file=file) for file in known.uncommitted),
                left_over=tuple(DataFile(file=file) for file in listed if is_left_over(file.path)),
                gone=tuple(DataFile(file=file) for file in known.gone),
            )
        listed = again
    raise TransientError(f"the files of {store.root} changed each of {_LISTED_MOST} times that they were listed")


def _in_sight(files: Iterable[FileEntry], marker: str) -> list[FileEntry]:
    """Return the files that count, or commit others, by themselves."""
    return [file for file in files if not is_hidden(file.path) or file.name == marker or is_manifest(file.path)]


def offsets_named(files: Iterable[DataFile], topic: str) -> dict[int, int]:
    """Return the last offset of each partition of a topic that the names of files say."""
    last: dict[int, int] = {}
    for file in files:
        named = file.offsets_named
        if named is not None and named.topic == topic:
            last[named.partition] = max(last.get(named.partition, -1), named.last)
    return last
