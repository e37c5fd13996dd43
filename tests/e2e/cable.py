"""Put a cable between the service and the database of a shop: it can be pulled out, and fall silent."""

import asyncio

from psycopg2.extensions import parse_dsn

from makewhole.stack.ports import LOOPBACK, free_ports
from tests.e2e.stage import Stage
from tests.lab.servers.tcp_proxy import Stream, TcpProxy

_BYTES = 65536


class Cable(TcpProxy):
    """A port of its own that leads to another one. While it is out, connections are refused and those that were are
    broken."""

    def __init__(self, target: int) -> None:
        (self.port,) = free_ports(1)
        self._silent_at: bytes | None = None
        super().__init__({self.port: target})

    def pull(self) -> None:
        """Break every connection, and refuse new ones."""
        self._run(self._close())
        self.servers.clear()

    def put_back(self) -> None:
        """Take connections again, and pass everything on."""
        self._silent_at = None
        self._run(self.listen())

    def fall_silent(self, at: bytes) -> None:
        """Pass nothing on from a request that says this, on its connection, and report nothing: it stays open."""
        self._silent_at = at

    async def carry(self, client: Stream, server: Stream) -> None:
        ways = [asyncio.create_task(self._pass_on(*way)) for way in ((client[0], server[1]), (server[0], client[1]))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server[1].close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while content := await reader.read(_BYTES):
            if self._silent_at is not None and self._silent_at in content:
                await asyncio.Event().wait()
            writer.write(content)
            await writer.drain()


def far_database(shop: str) -> str:
    """Return the id of the connection to the database of a shop at the end of its cable, which only Airflow knows."""
    return f"far_{shop}"


def lay_cable(stage: Stage, shop: str) -> Cable:
    """Lay a cable to the database of a shop, and add it to Airflow's connections."""
    target = parse_dsn(stage.status["postgres"]["dsn"])
    cable = Cable(int(target["port"]))
    cable.start()
    connection = {
        "connection_id": far_database(shop),
        "conn_type": "postgres",
        "host": LOOPBACK,
        "port": cable.port,
        "login": target["user"],
        "password": target.get("password"),
        "schema": target["dbname"],
    }
    stage.client().post("/connections", json=connection).raise_for_status()
    return cable
