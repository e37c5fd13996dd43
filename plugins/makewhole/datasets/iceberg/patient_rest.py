"""Have no request to a REST catalogue wait for its answer for ever: a server may take a connection and say nothing."""

from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 120.0


class _LimitedRequests(HTTPAdapter):
    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        """Send a request; a session gives all options by their names, and no limit as None."""
        if options.get("timeout") is None:
            options["timeout"] = (_CONNECT_SECONDS, _ANSWER_SECONDS)
        return super().send(request, *arguments, **options)


class PatientRestCatalog(RestCatalog):
    """A REST catalogue whose answers are waited for so long at most."""

    def _config_headers(self, session: Session) -> None:
        """Prepare a session before its first request, which may be the one for a token."""
        for scheme in ("http://", "https://"):
            session.mount(scheme, _LimitedRequests())
        super()._config_headers(session)
