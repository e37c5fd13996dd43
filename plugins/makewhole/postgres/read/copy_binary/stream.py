"""Take what COPY sends in large chunks, in a thread of its own, so that reading it goes on meanwhile."""

import io
import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any

import psycopg2

from makewhole.sql import PgConnection

CHUNK_BYTES = 8 << 20
_CHUNKS_AHEAD = 1


class CopyStream:
    """A COPY that is under way. `sent_rows` is known when all chunks were taken, and `problem` if it broke off."""

    def __init__(self, session: PgConnection, statement: str, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.sent_rows = 0
        self.problem: Exception | None = None
        self._session, self._statement = session, statement
        self._chunks = _Chunks()
        self._buffer = io.BufferedWriter(self._chunks, chunk_bytes)
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def chunks(self) -> Generator[bytes, None, None]:
        """Yield what is sent. The connection is in use until the iterator is closed."""
        self._thread.start()
        try:
            yield from self._chunks.taken()
        finally:
            self._chunks.refuse()
            self._thread.join()

    def _copy(self) -> None:
        try:
            with self._session.cursor() as cursor:
                cursor.copy_expert(self._statement, self._buffer)
                self._buffer.flush()
                self.sent_rows = cursor.rowcount
        except (psycopg2.Error, OSError) as error:
            self.problem = error
        finally:
            self._chunks.end()


class _Chunks(io.RawIOBase):
    """A file that hands on what is written to another thread, and holds the writer back while that one is busy."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: queue.Queue[bytes | None] = queue.Queue(_CHUNKS_AHEAD)
        self._is_refused = False

    def writable(self) -> bool:
        return True

    def write(self, chunk: Any) -> int:
        if self._is_refused:
            raise OSError("the stream is not read any more")
        self._queue.put(bytes(chunk))
        return len(chunk)

    def taken(self) -> Iterator[bytes]:
        """Yield the chunks, to the end."""
        while (chunk := self._queue.get()) is not None:
            yield chunk

    def end(self) -> None:
        """Report to the reader that no more is written."""
        if not self._is_refused:
            self._queue.put(None)

    def refuse(self) -> None:
        """Make the writer fail instead of waiting."""
        self._is_refused = True
        while not self._queue.empty():
            self._queue.get_nowait()
