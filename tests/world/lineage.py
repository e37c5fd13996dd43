"""A server that takes events as OpenLineage's clients send them over HTTP."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from makewhole.stack.ports import LOOPBACK


@dataclass
class TakenLineage:
    """Every event that a server has taken, in their order."""

    port: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def last_of(self, job: str) -> dict[str, Any] | None:
        """The newest event of a job that has ended, by DAG and task; None: none was taken."""
        ended = (event for event in reversed(self.events) if event["eventType"] in ("COMPLETE", "FAIL"))
        return next((event for event in ended if event["job"]["name"] == job), None)


@contextmanager
def lineage_server() -> Iterator[TakenLineage]:
    """Take events on a port of its own."""
    taken = TakenLineage()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.events.append(json.loads(gzip.decompress(body) if self.headers["Content-Encoding"] else body))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    taken.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield taken
    finally:
        server.shutdown()
