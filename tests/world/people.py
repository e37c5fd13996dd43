"""Servers that people are reached by: one that takes mail, and one that takes posts of webhooks."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import AsyncMessage

from makewhole.stack.ports import LOOPBACK, free_ports


@dataclass
class TakenMail:
    """The mails that a server has taken, in order. While it `refuses`, it takes none."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    refuses: bool = False


class _Inbox(AsyncMessage):
    def __init__(self, taken: TakenMail) -> None:
        super().__init__(EmailMessage)
        self._taken = taken

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        if self._taken.refuses:
            return "451 not now"
        self._taken.mails.append(message_from_bytes(envelope.original_content, policy=policy.default))
        return "250 taken"

    async def handle_message(self, message: Any) -> None:
        pass


@contextmanager
def mail_server() -> Iterator[TakenMail]:
    """Start a server that takes mail, without encryption, from whoever comes."""
    taken = TakenMail(port=free_ports(1)[0])
    controller = Controller(_Inbox(taken), hostname=LOOPBACK, port=taken.port)
    controller.start()
    try:
        yield taken
    finally:
        controller.stop()


@dataclass
class TakenPosts:
    """The JSON objects that a server was sent, each with its path, in order. It answers with `status`."""

    port: int = 0
    posts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    status: int = 200


@contextmanager
def webhook_server() -> Iterator[TakenPosts]:
    """Start a server that takes posts of JSON."""
    taken = TakenPosts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if taken.status == 200:
                taken.posts.append((self.path, json.loads(body)))
            self.send_response(taken.status)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    taken.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
