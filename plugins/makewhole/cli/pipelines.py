"""Run `makewhole pipelines`: list the pipelines of the folders and of the journal, and how far each is judged."""

import getpass
import json as json_format
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.cli.report import short_time
from makewhole.config.pipeline_file import PipelineFile, pipeline_files, pipeline_folders, read_files
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.deployment import pipeline_owners
from makewhole.journal.deployment.pipeline_owners import PipelineOwner
from makewhole.model.errors import RefusedError
from makewhole.model.text import counted
from makewhole.sql import PgConnection

_console = console()
_HEADINGS = ("pipeline", "schedule", "newest window", "to", "state", "file")


_AIRFLOW = "Airflow"


def pipelines(
    release: Annotated[
        str | None,
        typer.Option(
            metavar="PIPELINE",
            help="Release a pipeline that has moved: the next Airflow that opens a window of it judges it.",
        ),
    ] = None,
    json: AsJsonLines = False,
) -> None:
    """List all pipelines: those that a file describes, with its schedule, and those that only the journal knows; each
    with its newest window, and, where several Airflows use this journal, the one that judges it. No other one does."""
    if release is not None:
        _release(release, json=json)
        return
    with service_environment(), connect() as journal:
        owners = pipeline_owners.owners(journal)
        files = {file.name or str(file.path): file for file in read_files(pipeline_files(pipeline_folders()))}
        names = sorted({*files, *windows.pipelines(journal)})
        documents = [_document(journal, name, files.get(name), owners.get(name)) for name in names]
    if json:
        for document in documents:
            typer.echo(json_format.dumps(document, ensure_ascii=False))
        return
    if not documents:
        _console.print("there is no pipeline yet; `makewhole init` writes the file of one")
        return
    table = Table(box=None, pad_edge=False)
    has_several = len({owner.deployment for owner in owners.values()}) > 1
    for heading in (*_HEADINGS, _AIRFLOW) if has_several else _HEADINGS:
        table.add_column(heading, overflow="fold")
    for document in documents:
        cells = (*_cells(document), _owner_cell(document)) if has_several else _cells(document)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    print_table(_console, table)


def _release(name: str, *, json: bool) -> None:
    """Release a pipeline and say what comes of it.

    Raises:
        RefusedError: no Airflow judges one of this name.
    """
    by = f"{getpass.getuser()} (shell)"
    with service_environment(), connect() as journal:
        owner = pipeline_owners.owners(journal).get(name)
        if owner is None or not pipeline_owners.release(journal, name, by):
            raise RefusedError(f"no Airflow judges a pipeline {name} at this journal; `makewhole pipelines` lists all")
    if json:
        typer.echo(
            json_format.dumps({"pipeline": name, "released_by": by, **_owner_document(owner)}, ensure_ascii=False)
        )
        return
    _console.print(
        f"{name} was judged by {owner.address} (deployment {owner.deployment}); the next Airflow that opens a window "
        "judges it from now on. Pause its DAG in the former one, or take its file from there."
    )


def _owner_document(owner: PipelineOwner | None) -> dict[str, Any]:
    if owner is None or owner.released_at is not None:
        return {"deployment": None, "address": None}
    return {"deployment": owner.deployment, "address": owner.address}


def _owner_cell(document: Mapping[str, Any]) -> str:
    return f"{document['address']} ({document['deployment']})" if document["deployment"] else "none yet"


def _document(
    journal: PgConnection, name: str, file: PipelineFile | None, owner: PipelineOwner | None
) -> dict[str, Any]:
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
        **_owner_document(owner),
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
