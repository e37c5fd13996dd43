"""Drop a connection to PostgreSQL at one request: before it arrives, or when it is done.

Who wants that says so through a Unix socket, right before the request: the local port of the connection (0: the one
that is made next) and what shall happen to it. Requests are distinguished by PostgreSQL's own framing.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from makewhole.stack.ports import free_ports
from tests.lab.servers.tcp_proxy import Stream, TcpProxy

CUT, LOSE = "cut", "lose"
"""The request never arrives; or it is done, and the answer never comes."""

_TYPE_BYTES, _LENGTH_BYTES = 1, 4
_QUERY, _READY, _COMPLETE = b"Q", b"Z", b"C"
_BEGIN = b"BEGIN"


@dataclass(kw_only=True, eq=False)
class _Fault:
    """A fault of the next request of a connection."""

    how: str = ""


@dataclass(kw_only=True)
class PostgresProxy:
    """Between runners and one server. `hits`: how often a fault was met since `forget`."""

    target: int
    control: Path
    hits: int = 0
    _faults: dict[int, _Fault] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.port,) = free_ports(1)
        self._proxy = _Proxy(self)

    def start(self) -> None:
        self._proxy.start()

    def stop(self) -> None:
        self._proxy.stop()

    def forget(self) -> None:
        """No connection, no fault, no hit."""
        self._proxy.cut_all()
        self._faults.clear()
        self.hits = 0

    def fault_of(self, port: int) -> _Fault:
        return self._faults.setdefault(port, _Fault())


class _Proxy(TcpProxy):
    def __init__(self, owner: PostgresProxy) -> None:
        super().__init__({owner.port: owner.target})
        self._owner = owner

    async def listen(self) -> None:
        await super().listen()
        self.servers.append(await asyncio.start_unix_server(self._hear, self._owner.control))

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wish = json.loads(await reader.readline())
        self._owner.fault_of(wish["port"]).how = wish["how"]
        writer.write(b"k")
        await writer.drain()
        writer.close()

    async def carry(self, client: Stream, server: Stream) -> None:
        fault = self._owner.fault_of(client[1].get_extra_info("peername")[1])
        fault.how = self._owner.fault_of(0).how
        self._owner.fault_of(0).how = ""
        await _Link(self._owner, fault, client, server).carry()


class _Link:
    """One connection. A session begins with a message that has no type; its answer ends like any other."""

    def __init__(self, owner: PostgresProxy, fault: _Fault, client: Stream, server: Stream) -> None:
        self._owner, self._fault = owner, fault
        self._client, self._server = client, server
        self._is_losing = False

    async def carry(self) -> None:
        ways = [asyncio.create_task(way) for way in (self._requests(), self._answers())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._server[1].close()

    async def _requests(self) -> None:
        type_bytes = 0
        while True:
            message = await _read(self._client[0], type_bytes)
            if self._fault.how == CUT:
                self._hit()
                return
            # A transaction is begun by a request of its own, in front of the one that was intended.
            if self._fault.how == LOSE and not message[_TYPE_BYTES + _LENGTH_BYTES :].startswith(_BEGIN):
                self._hit()
                self._is_losing = True
            self._server[1].write(message)
            await self._server[1].drain()
            type_bytes = _TYPE_BYTES

    async def _answers(self) -> None:
        while True:
            message = await _read(self._server[0], _TYPE_BYTES)
            if self._is_losing and message[:_TYPE_BYTES] == _READY:
                return
            if not (self._is_losing and message[:_TYPE_BYTES] == _COMPLETE):
                self._client[1].write(message)
                await self._client[1].drain()

    def _hit(self) -> None:
        self._fault.how = ""
        self._owner.hits += 1


async def _read(reader: asyncio.StreamReader, type_bytes: int) -> bytes:
    with suppress(asyncio.IncompleteReadError):
        head = await reader.readexactly(type_bytes + _LENGTH_BYTES)
        length = int.from_bytes(head[type_bytes:], "big") - _LENGTH_BYTES
        return head + await reader.readexactly(length)
    raise ConnectionResetError("the connection has ended")
