"""Run a TCP proxy on loopback, in a thread of its own; its kinds say what it does to what passes."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from makewhole.stack.ports import LOOPBACK

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_TIMEOUT_SECONDS = 90.0


class TcpProxy:
    """Listens on the ports that are the mapping's keys, each of which leads to the port that is its value."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        self.ports = dict(ports)
        self.loop = asyncio.new_event_loop()
        self.servers: list[asyncio.Server] = []
        self._links: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self.loop.run_forever, name="proxy", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._run(self.listen())

    def stop(self) -> None:
        """Close everything. Safe to call twice, or without a start."""
        if not self._thread.is_alive():
            return
        self._run(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def cut_all(self) -> None:
        """Close every connection."""
        self._run(self._cut_all())

    async def carry(self, client: Stream, server: Stream) -> None:
        """Pass on what one connection of a client and ours to the server behind it say, until one side closes."""
        raise NotImplementedError

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(_TIMEOUT_SECONDS)

    async def listen(self) -> None:
        for port, target in self.ports.items():
            accept = partial(self._accept, target)
            self.servers.append(await asyncio.start_server(accept, LOOPBACK, port))

    async def _close(self) -> None:
        for server in self.servers:
            server.close()
        await self._cut_all()

    async def _cut_all(self) -> None:
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _accept(self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        try:
            with suppress(OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
                await self.carry((reader, writer), await asyncio.open_connection(LOOPBACK, target))
        finally:
            self._links.discard(link)
            writer.close()
