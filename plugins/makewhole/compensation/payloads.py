"""The payload file of a plan: what will be written, frozen, each row bound to its action by a digest."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, cast

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.model.errors import CorruptionError, TransientError

_BLOCK_BYTES = 1 << 20
_CHUNK_ACTIONS = b"makewhole.chunk_actions"

_TYPES: dict[str, pa.DataType] = {
    "seq": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "partition": pa.int32(),
    "extra": pa.string(),
}
SCHEMA = pa.schema(_TYPES)


@dataclass(frozen=True, kw_only=True)
class Payload:
    """What one action writes. `extra` is JSON-able: origin, columns, before-images."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def extra_text(self) -> str:
        return json.dumps(dict(self.extra), sort_keys=True, separators=(",", ":"))

    def sha256(self) -> str:
        """Over every field, each with its length, so that no two payloads read alike."""
        digest = hashlib.sha256()
        numbers = [None if number is None else str(number).encode() for number in (self.timestamp_ms, self.partition)]
        parts: list[bytes | None] = [self.key, self.value, *numbers, self.extra_text.encode()]
        for name, value in self.headers:
            parts += [name.encode(), value]
        for part in parts:
            digest.update(b"-" if part is None else f"{len(part)}:".encode() + part)
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class PayloadFile:
    """A payload file that was verified against the journal. `chunk_actions` is frozen with it."""

    uri: str
    rows: int
    chunk_actions: int


def write_payloads(uri: str, payloads: Sequence[Payload], chunk_actions: int) -> str:
    """Write the payloads in order, one row group per `chunk_actions`; returns the file's SHA-256.

    Written under another name first: a reader sees all of it or nothing.
    """
    rows = [_row(seq, payload) for seq, payload in enumerate(payloads)]
    schema = SCHEMA.with_metadata({_CHUNK_ACTIONS: str(chunk_actions).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, row_group_size=chunk_actions, compression="zstd")
    content = sink.getvalue().to_pybytes()
    filesystem, path = fsspec.core.url_to_fs(uri)
    filesystem.makedirs(filesystem._parent(path), exist_ok=True)
    filesystem.pipe_file(f"{path}.partial", content)
    filesystem.mv(f"{path}.partial", path)
    return hashlib.sha256(content).hexdigest()


def verify_payloads(uri: str, file_sha256: str, action_digests: Sequence[str | None]) -> PayloadFile:
    """Read the whole file once and compare it with what the journal says of it and of each action, in order.

    Raises:
        CorruptionError: the file is not there, or is not what was frozen.
    """
    with _opened(uri) as file:
        digest = hashlib.sha256()
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
        if digest.hexdigest() != file_sha256:
            raise _tampered(uri)
        file.seek(0)
        parquet = pq.ParquetFile(file)
        chunk_actions = int((parquet.schema_arrow.metadata or {}).get(_CHUNK_ACTIONS, b"0"))
        found = [payload.sha256() for _, payload in _read(parquet, range(parquet.num_row_groups))]
    if found != list(action_digests) or chunk_actions < 1:
        raise _tampered(uri)
    return PayloadFile(uri=uri, rows=len(found), chunk_actions=chunk_actions)


def read_payloads(file: PayloadFile, digests: Mapping[int, str]) -> dict[int, Payload]:
    """The payloads of these actions (by number), each checked again: the file may have changed since.

    Raises:
        CorruptionError: one does not match its digest, or is not there.
    """
    groups = sorted({seq // file.chunk_actions for seq in digests})
    with _opened(file.uri) as handle:
        found = {seq: payload for seq, payload in _read(pq.ParquetFile(handle), groups) if seq in digests}
    if any(seq not in found or found[seq].sha256() != digest for seq, digest in digests.items()):
        raise _tampered(file.uri)
    return found


@contextmanager
def _opened(uri: str) -> Iterator[IO[bytes]]:
    try:
        with fsspec.open(uri, "rb") as file:
            yield cast(IO[bytes], file)
    except FileNotFoundError as error:
        raise CorruptionError(
            f"the payload file {uri} is gone; nothing was written. Restore it, or open a new revision of the window"
        ) from error
    except (pa.ArrowInvalid, pa.ArrowKeyError, IndexError) as error:
        raise _tampered(uri) from error
    except (TimeoutError, ConnectionError) as error:
        raise TransientError(f"the payload file {uri} cannot be read; try again") from error


def _tampered(uri: str) -> CorruptionError:
    return CorruptionError(
        f"the payload file {uri} is not the one that the plan froze; nothing of it is written. "
        "Open a new revision of the window"
    )


def _row(seq: int, payload: Payload) -> dict[str, Any]:
    return {
        "seq": seq,
        "key": payload.key,
        "value": payload.value,
        "headers": [{"key": name, "value": value} for name, value in payload.headers],
        "timestamp": payload.timestamp_ms,
        "partition": payload.partition,
        "extra": payload.extra_text,
    }


def _read(parquet: pq.ParquetFile, groups: Iterable[int]) -> Iterator[tuple[int, Payload]]:
    for group in groups:
        table = parquet.read_row_group(group)
        table = table.set_column(
            table.schema.get_field_index("timestamp"), "timestamp", table.column("timestamp").cast(pa.int64())
        )
        for row in table.to_pylist():
            yield (
                row["seq"],
                Payload(
                    key=row["key"],
                    value=row["value"],
                    headers=tuple((header["key"], header["value"]) for header in row["headers"]),
                    timestamp_ms=row["timestamp"],
                    partition=row["partition"],
                    extra=json.loads(row["extra"]),
                ),
            )
