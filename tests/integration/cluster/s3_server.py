"""Serve S3 from memory on a free port of this machine, to those alone who have the access key.

A program of its own, run in an environment that has `moto[server]`: `s3_server.py ACCESS_KEY`. It prints its port.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

_Answer = Callable[..., Any]


class OwnersOnly:
    """Refuses every request that is not signed with the access key."""

    def __init__(self, application: Any, access_key: str) -> None:
        self._application = application
        self._signed_by = f"Credential={access_key}/"

    def __call__(self, environ: dict[str, Any], start_response: _Answer) -> Iterable[bytes]:
        if self._signed_by in environ.get("HTTP_AUTHORIZATION", ""):
            answer: Iterable[bytes] = self._application(environ, start_response)
            return answer
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]


if __name__ == "__main__":
    served = OwnersOnly(DomainDispatcherApplication(create_backend_app), sys.argv[1])
    server = make_server("127.0.0.1", 0, served, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()
