"""Name a view of a dataset of files: their list at one moment; and what it has seen, which is kept."""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable

from makewhole.datasets.files.listing import DataFile
from makewhole.file_stores.store import FileEntry

_DIGEST_BYTES = 8


def view_text(files: Iterable[DataFile]) -> str:
    """Return a list of files as a text, which travels to readers."""
    listed = [[data.path, data.file.size_bytes, data.file.modified_ms] for data in files]
    return base64.b64encode(zlib.compress(json.dumps(listed).encode())).decode()


def files_of_view(text: str) -> tuple[DataFile, ...]:
    """Return the list of a text."""
    listed = json.loads(zlib.decompress(base64.b64decode(text)))
    return tuple(
        DataFile(file=FileEntry(path=path, size_bytes=size, modified_ms=modified)) for path, size, modified in listed
    )


def seen_text(files: Iterable[DataFile]) -> str:
    """Return what says later which files were seen: eight bytes for each."""
    return base64.b64encode(b"".join(sorted(map(_digest, files)))).decode()


def seen_number(text: str) -> int:
    """Return the number of files that `seen_text` was made of; 0 where it is of a table of another kind."""
    return len(_digests(text))


class SeenFiles:
    """The files that a view has seen, by what `seen_text` returned of it; none by the text of a table of another
    kind."""

    def __init__(self, text: str) -> None:
        self._digests = set(_digests(text))

    def __contains__(self, data: DataFile) -> bool:
        return _digest(data) in self._digests


def _digests(text: str) -> list[bytes]:
    try:
        digests = base64.b64decode(text, validate=True)
    except ValueError:
        return []
    return [digests[at : at + _DIGEST_BYTES] for at in range(0, len(digests), _DIGEST_BYTES)]


def _digest(data: DataFile) -> bytes:
    text = json.dumps([data.path, data.file.size_bytes, data.file.modified_ms])
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
