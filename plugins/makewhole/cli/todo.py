"""Run `makewhole todo`: list what waits for a person, over all pipelines, the most urgent first."""

import json as json_format
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import log_url
from makewhole.cli.environment import AsJsonLines, console, printable, service_environment
from makewhole.journal.database import connect
from makewhole.model.people.notices import Waits
from makewhole.orchestration.notices.waiting_items import TodoItem, lines_of, waiting_items

_console = console()


def todo(json: AsJsonLines = False) -> None:
    """List what waits for a person, over all pipelines, the most urgent first, each with the command to run next.

    Questions that end by themselves come first, then certificates that were revoked, red self-checks, pipelines that
    stand still,
    repairs that stopped on the way, plans that were refused, gaps, and what is not known; within each the one that ends
    first, then the oldest.
    """
    with service_environment(), connect() as journal:
        items = _each_once(waiting_items(journal, log_url))
    if json:
        for item in items:
            typer.echo(json_format.dumps(item.document(), ensure_ascii=False))
        return
    show_items(_console, items, datetime.now(UTC))


def _each_once(items: list[TodoItem]) -> list[TodoItem]:
    """Leave out the gaps that a refused plan was to repair: the item of the plan is about them."""
    refused = {(item.pipeline, item.window) for item in items if item.kind is Waits.REFUSED}
    return [item for item in items if item.kind is not Waits.GAPS or (item.pipeline, item.window) not in refused]


def show_items(out: Console, items: list[TodoItem], now: datetime) -> None:
    """Print two lines an item: what waits and since when; below, the command to run next."""
    if not items:
        out.print("nothing waits for a person")
        return
    for number, item in enumerate(items, start=1):
        first, *rest = lines_of(item, now)
        for line in (f"{number}. {first}", *rest):
            out.print(Text(printable(line)))
