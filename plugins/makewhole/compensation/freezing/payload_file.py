"""Write and read the payload file of a plan. The plan's hash covers the hash of the file."""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.file_system import fsspec_file_system, make_folder, open_to_read, prepare, with_ending
from makewhole.model.actions import Payload, canonical_text
from makewhole.model.errors import CorruptionError, TransientError

_BLOCK_BYTES = 1 << 20
_ORIGIN = "origin"

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_TYPES: dict[str, pa.DataType] = {
    "seq": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(HEADER),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "partition": pa.int32(),
    _ORIGIN: pa.string(),
    "extra": pa.string(),
}
SCHEMA = pa.schema(_TYPES)
"""A row per action, a row group per chunk: by target in the order of its first action, then by chunk."""


class PayloadFile:
    """A private copy of a plan's payload file: what was hashed is what is read. Close it when the plan is done."""

    def __init__(self, uri: str, copy: IO[bytes]) -> None:
        self._uri = uri
        self._copy = copy
        self._lock = Lock()  # a prefetch reads in another thread than a rescan
        with _damage_reported(uri):
            self._parquet = pq.ParquetFile(copy)

    @property
    def rows(self) -> int:
        return int(self._parquet.metadata.num_rows)

    def close(self) -> None:
        """Delete the copy."""
        self._parquet.close()
        self._copy.close()

    def chunk(self, group: int, seqs: Any) -> pa.Table:
        """Read the payloads of a chunk by the number of its row group: columns of `SCHEMA`, rows as in `seqs`.

        Raises:
            CorruptionError: they are not those of these actions.
        """
        with _damage_reported(self._uri), self._lock:
            table = self._parquet.read_row_group(group)
        if table.schema.names != SCHEMA.names or not table.column("seq").equals(seqs):
            raise _tampered(self._uri)
        return table


def write_payloads(prefix: str, chunks: Iterable[Sequence[tuple[int, Payload]]]) -> tuple[str, str]:
    """Write the payloads of chunks, each (action number, payload) in order; see `write_payload_tables`."""
    return write_payload_tables(prefix, (payload_table(chunk) for chunk in chunks))


def write_payload_tables(prefix: str, chunks: Iterable[pa.Table]) -> tuple[str, str]:
    """Write the payloads of chunks, each a row group (`payload_table`); return the file's URI and SHA-256.

    The URI is `<prefix>-<first 12 of the SHA-256>.parquet`. It is written under another name first: a reader sees all
    of it or nothing. One chunk at a time is in memory.
    """
    with tempfile.NamedTemporaryFile(prefix="makewhole-payloads-") as local:
        with pq.ParquetWriter(local, SCHEMA, compression="zstd") as writer:
            for chunk in chunks:
                writer.write_table(chunk, row_group_size=len(chunk))
        local.flush()
        local.seek(0)
        sha256 = _copy_hashed(local, None)
        uri = with_ending(prefix, f"-{sha256[:12]}.parquet")
        filesystem, path = fsspec_file_system(uri)
        make_folder(filesystem, filesystem._parent(path))
        unfinished = f"{path}.{uuid4().hex[:16]}.partial"  # another runner may be writing the same
        prepare(filesystem, unfinished)
        filesystem.put_file(local.name, unfinished)
        filesystem.mv(unfinished, path)
        return uri, sha256


def verified_copy(uri: str, file_sha256: str, while_copying: Callable[[], None] = lambda: None) -> PayloadFile:
    """Copy the file to a private place and check its hash: nothing can change between the check and the use.

    `while_copying` is called after every block.

    Raises:
        CorruptionError: the file is not there, or is not what was frozen.
        TransientError: it cannot be read now.
    """
    with ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryFile(prefix="makewhole-payloads-"))
        with _open_file(uri) as file:
            if _copy_hashed(file, copy, while_copying) != file_sha256:
                raise _tampered(uri)
        copy.seek(0)
        payloads = PayloadFile(uri, copy)
        stack.pop_all()
        return payloads


def _copy_hashed(source: IO[bytes], target: IO[bytes] | None, after_block: Callable[[], None] = lambda: None) -> str:
    """Copy `source` to `target`, if there is one, and return the SHA-256."""
    digest = hashlib.sha256()
    while block := source.read(_BLOCK_BYTES):
        digest.update(block)
        if target is not None:
            target.write(block)
        after_block()
    return digest.hexdigest()


@contextmanager
def _open_file(uri: str) -> Iterator[IO[bytes]]:
    try:
        with open_to_read(uri) as file:
            yield file
    except FileNotFoundError as error:
        raise CorruptionError(
            f"the payload file {uri} is gone; nothing was written. Restore it, or open a new revision of the window"
        ) from error
    except (TimeoutError, ConnectionError) as error:
        raise TransientError(f"the payload file {uri} cannot be read; try again") from error


@contextmanager
def _damage_reported(uri: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, IndexError) as error:
        raise _tampered(uri) from error


def _tampered(uri: str) -> CorruptionError:
    return CorruptionError(
        f"the payload file {uri} is not the one that the plan froze; nothing of it is written. "
        "Open a new revision of the window"
    )


def payload_table(chunk: Sequence[tuple[int, Payload]]) -> pa.Table:
    """Return the payloads of a chunk, with the numbers of their actions, as columns of `SCHEMA`."""
    payloads, extras = [payload for _, payload in chunk], [payload.extra for _, payload in chunk]
    columns: dict[str, list[Any]] = {
        "seq": [seq for seq, _ in chunk],
        "key": [payload.key for payload in payloads],
        "value": [payload.value for payload in payloads],
        "headers": [payload.headers for payload in payloads],
        "timestamp": [payload.timestamp_ms for payload in payloads],
        "partition": [payload.partition for payload in payloads],
        # A column of its own, so that the headers of a replay are made without parsing JSON.
        _ORIGIN: [extra.origin for extra in extras],
        "extra": [canonical_text({k: v for k, v in extra.fields.items() if k != _ORIGIN}) for extra in extras],
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)
