"""Run `makewhole published`: show what is published of a pipeline once for everyone, and where."""

import json as json_format
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.journal.database import connect
from makewhole.journal.publications import PublishedWindow
from makewhole.publishing.published import PublishedPoint, published_points

_console = console()


def published(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")], json: AsJsonLines = False
) -> None:
    """List the windows of a pipeline that are published, each in its newest published revision, and where.

    A window whose certificates were revoked is named with the entry of the chain that says so.
    """
    with service_environment(), connect() as journal:
        points = published_points(journal, pipeline)
    if json:
        for point in points:
            for window in point.newest.values():
                typer.echo(json_format.dumps(_document(point, window), ensure_ascii=False))
        return
    if not points:
        _console.print(f"nothing of {pipeline} is published; `publish` of a topic point in its file says where")
    for point in points:
        _show(point)


def _document(point: PublishedPoint, window: PublishedWindow) -> dict[str, Any]:
    """Return what is published of a window as JSON has it."""
    manifest = window.manifest
    return {
        "pipeline": point.publication.pipeline,
        "point": point.publication.point,
        "window": window.number,
        "revision": window.revision,
        "from": manifest["start"],
        "to": manifest["end"],
        "manifest": point.manifest_uri(window),
        "topic": point.publication.topic or None,
        "is_sent": point.is_sent(window),
        "records": manifest["records"],
        "published": manifest["published"],
        "withdrawn": manifest["withdrawn"],
        "left_out": manifest["left_out"],
        "sent_again": manifest["sent_again"],
        "newest_revision": window.newest_revision,
        "state": window.state,
        "is_newest": window.is_newest,
        "revoked_by": None if window.revocation is None else window.revocation["ordinal"],
        "complete_through": point.complete_through,
    }


def _show(point: PublishedPoint) -> None:
    """Print where a point is published, a line for each window, and up to which one nothing is left out."""
    publication = point.publication
    into = f" and topic {publication.topic.partition(':')[2]}" if publication.topic else ""
    _console.print(Text(printable(f"{publication.point}: {publication.root}{into}")))
    table = Table(box=None, pad_edge=False)
    for heading in ("window", "rev", "to", "records", "changed", "left out", "sent again", "state now"):
        table.add_column(heading, overflow="fold")
    for window in point.newest.values():
        manifest = window.manifest
        again = manifest["sent_again"]
        table.add_row(
            str(window.number),
            str(window.revision),
            str(manifest["end"])[:16].replace("T", " "),
            f"{manifest['records']:,}",
            f"+{manifest['published']:,} −{manifest['withdrawn']:,}",
            ", ".join(f"{keys:,} {why}" for why, keys in manifest["left_out"].items()) or "none",
            f"{again['records'] + again['keys_of_other_windows']:,}",
            Text(printable(_state(point, window))),
        )
    print_table(_console, table)
    through = point.complete_through
    if through is not None:
        _console.print(f"complete through window {through}")
    else:
        _console.print("the first window is not proven any more" if point.newest else "nothing is published yet")


def _state(point: PublishedPoint, window: PublishedWindow) -> str:
    if window.revocation is not None:
        return f"revoked by entry {window.revocation['ordinal']}: {window.revocation['because']['reason']}"
    if not window.is_newest:
        return f"revision {window.newest_revision} is {window.state}, and not published"
    return window.state if point.is_sent(window) else f"{window.state}, not all of it is in the topic yet"
