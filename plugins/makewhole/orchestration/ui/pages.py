"""Serve makewhole's pages from Airflow's API server: the result of a run, and the documentation.

Every process of Airflow loads this module, and only the API server calls it: what serves is made at the first request.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from makewhole.orchestration.ui.addresses import PREFIX as PREFIX

if TYPE_CHECKING:
    from fastapi import FastAPI


async def serve(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    """Answer a request below `PREFIX`: an ASGI application."""
    await _application()(scope, receive, send)


@cache
def _application() -> "FastAPI":
    from makewhole.orchestration.ui.application import make_application

    return make_application()
