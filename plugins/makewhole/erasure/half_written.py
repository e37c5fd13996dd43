"""Find the files that cannot be searched for a key: what attempts that died left half written, archives alone."""

import re
from collections.abc import Collection, Iterator, Mapping

from makewhole.erasure.stored_rows import is_spared
from makewhole.journal.retention import removable
from makewhole.journal.retention.erasures import ErasedKey
from makewhole.kafka.log.archive import REMOVED
from makewhole.kafka.log.segment import SIDECAR
from makewhole.lake.give_name import UNFINISHED
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.sql import PgConnection

_SEGMENT = re.compile(r"(?P<archive>.*/archive)/partition=[0-9]+/(?P<base>[0-9]+)\.log")
_KEYS = "/keys/"
_OF_WINDOW = re.compile(r".*/window=(?P<number>[0-9]+)/")
_OF_MERGE = re.compile(r"[^/]+/index/[^/]+/merged/(?P<attempt>[^/]+)/")


def unfinished_files(paths: Collection[str]) -> list[str]:
    """Return the files that were not given their name, and those that are left of an archive which is being removed."""
    alone = [path for path, segment in _segments_alone(paths) if f"{segment['archive']}{REMOVED}" in paths]
    return [*alone, *(path for path in paths if UNFINISHED.fullmatch(path))]


def unreadable_segments(storage: Storage, paths: Collection[str]) -> dict[str, CorruptionError]:
    """Return the segments of archives that have lost the file beside them, or never had it."""
    return {
        path: CorruptionError(f"{storage.uri(path)} has lost {segment['base']}{SIDECAR} beside it; restore that file")
        for path, segment in _segments_alone(paths)
        if f"{segment['archive']}{REMOVED}" not in paths
    }


def _segments_alone(paths: Collection[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for path in paths:
        segment = _SEGMENT.fullmatch(path)
        if segment is not None and f"{path.removesuffix('.log')}{SIDECAR}" not in paths:
            yield path, segment


def require_unnamed(
    journal: PgConnection, storage: Storage, pipeline: str, unreadable: Mapping[str, CorruptionError]
) -> None:
    """Require that nothing in the journal names any of these files, which cannot be read.

    Raises:
        CorruptionError: one is named, or lies where no attempt writes.
    """
    for path, error in unreadable.items():
        names = _names(journal, pipeline, path)
        if names is None or not {path, storage.uri(path)}.isdisjoint(names):
            raise error


def unsearchable_archives(journal: PgConnection, key: ErasedKey, paths: Collection[str]) -> list[str]:
    """Return the archives, by their folders, whose records were read into files that are gone: nothing says any more
    which of them are of a key."""
    archives = {matched["archive"] for path in paths if (matched := _SEGMENT.fullmatch(path)) is not None}
    read = {path.split(_KEYS, 1)[0] for path in paths if _KEYS in path}
    left = sorted(f"{folder}/archive" for folder in {path.removesuffix("/archive") for path in archives} - read)
    return [path for path in left if not is_spared(f"{path}/", key.spares) and _had_keys(journal, key.pipeline, path)]


def _had_keys(journal: PgConnection, pipeline: str, archive: str) -> bool:
    folder = f"{archive.removesuffix('/archive')}{_KEYS}"
    return any(text.startswith(folder) for text in _names(journal, pipeline, archive) or ())


def _names(journal: PgConnection, pipeline: str, path: str) -> Iterator[str] | None:
    """Return the texts in which a file would be named; None: it lies neither with a window nor with a merge."""
    of_merge, of_window = _OF_MERGE.match(path), _OF_WINDOW.match(path)
    if of_merge is not None:
        return removable.texts_of_merge(journal, pipeline, of_merge["attempt"])
    if of_window is not None:
        return removable.named_texts(journal, pipeline, int(of_window["number"]))
    return None
