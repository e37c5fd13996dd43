"""Play an Airflow: a server that gives chosen answers, good ones and others."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A status with a document, or with a page as text; `is_cut_off`: the connection ends before it."""

    status: int
    body: object = None
    is_cut_off: bool = False

    @property
    def content(self) -> tuple[str, bytes]:
        """The type and the bytes of the body."""
        if isinstance(self.body, str):
            return "text/html", self.body.encode()
        return "application/json", json.dumps(self.body).encode()


CUT_OFF = Answer(200, is_cut_off=True)


@dataclass
class PlayedAirflow:
    """An Airflow whose `answers` stand by how a path below `/api/v2` begins; of several, the longest. `sent`: the
    documents that came with requests, in order."""

    url: str
    answers: dict[str, Answer] = field(default_factory=dict)
    sent: list[Any] = field(default_factory=list)

    def answer(self, path: str) -> Answer:
        """Return the answer to a request."""
        if path == "/auth/token":
            return self.answers.get(path, Answer(201, {"access_token": "a.b.c"}))
        below = path.removeprefix("/api/v2").partition("?")[0]
        beginning = max((known for known in self.answers if below.startswith(known)), key=len, default=None)
        return Answer(404, {"detail": "not found"}) if beginning is None else self.answers[beginning]


@contextmanager
def serving() -> Iterator[PlayedAirflow]:
    """Serve an Airflow on a free port."""
    played = PlayedAirflow(url="")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if content := self.rfile.read(int(self.headers.get("Content-Length") or 0)):
                played.sent.append(json.loads(content))
            answer = played.answer(self.path)
            if answer.is_cut_off:
                self.close_connection = True
                return
            kind, content = answer.content
            self.send_response(answer.status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        played.url = f"http://127.0.0.1:{listening.server_port}"
        yield played
        listening.shutdown()
        thread.join()
