"""Run `makewhole pipelines`: list the pipelines of the folders and of the journal, and how far each is judged."""

import json as json_format
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.cli.report import short_time
from makewhole.config.pipeline_file import PipelineFile, pipeline_files, pipeline_folders, read_files
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.text import counted
from makewhole.sql import PgConnection

_console = console()
_HEADINGS = ("pipeline", "schedule", "newest window", "to", "state", "file")


def pipelines(json: AsJsonLines = False) -> None:
    """List all pipelines: those that a file describes, with its schedule, and those that only the journal knows; each
    with its newest window."""
    with service_environment(), connect() as journal:
        files = {file.name or str(file.path): file for file in read_files(pipeline_files(pipeline_folders()))}
        names = sorted({*files, *windows.pipelines(journal)})
        documents = [_document(journal, name, files.get(name)) for name in names]
    if json:
        for document in documents:
            typer.echo(json_format.dumps(document, ensure_ascii=False))
        return
    if not documents:
        _console.print("there is no pipeline yet; `makewhole init` writes the file of one")
        return
    table = Table(box=None, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold")
    for document in documents:
        table.add_row(*(Text(printable(cell)) for cell in _cells(document)))
    print_table(_console, table)


def _document(journal: PgConnection, name: str, file: PipelineFile | None) -> dict[str, Any]:
    newest = next(iter(windows.newest(journal, name, 1)), None)
    described = None if file is None else file.pipeline
    return {
        "pipeline": name,
        "file": None if file is None else str(file.path),
        "problems": 0 if file is None else len(file.problems),
        "schedule": None if described is None else described.schedule,
        "window": None if newest is None else newest.number,
        "revision": None if newest is None else newest.revision,
        "to": None if newest is None else newest.end.isoformat(),
        "state": None if newest is None else newest.state.value,
    }


def _cells(document: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a line, in the order of the headings."""
    file = document["file"] or "none: its windows are in the journal alone"
    if document["problems"]:
        file += f" ({counted(document['problems'], 'problem')}: makewhole check)"
    schedule = document["schedule"] or ("none" if document["file"] else "")
    window = "none yet" if document["window"] is None else str(document["window"])
    to = "" if document["to"] is None else short_time(document["to"])
    return (document["pipeline"], schedule, window, to, document["state"] or "", file)
