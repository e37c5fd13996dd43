"""Run a small schema registry on this machine: what its clients ask for, from memory."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class RegistryServer:
    """The answers by path, and which paths were asked for. `status`: what every question is answered with, if set."""

    url: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    status: int | None = None

    def register(self, number: int, schema: Any, subject: str = "orders-value", **more: Any) -> bytes:
        """Add a schema; return the prefix of its values."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        answer = {"schema": text, **more}
        self.answers[f"/schemas/ids/{number}"] = answer
        version = 1 + sum(path.startswith(f"/subjects/{subject}/versions/") for path in self.answers)
        for name in (f"/subjects/{subject}/versions/{version}", f"/subjects/{subject}/versions/latest"):
            self.answers[name] = {**answer, "subject": subject, "version": version, "id": number}
        return b"\x00" + number.to_bytes(4, "big")

    def connection(self) -> str:
        """Return the connection to it, as a variable of the environment has it."""
        host, port = self.url.removeprefix("http://").split(":")
        return json.dumps({"conn_type": "http", "host": host, "port": int(port)})


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    """Start a registry, and end it."""
    known = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            known.asked.append(self.path)
            answer = known.answers.get(path)
            content = json.dumps(answer if answer is not None else {"error_code": 40403}).encode()
            self.send_response(known.status or (404 if answer is None else 200))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
