"""Run `makewhole index status`, `merge` and `rebuild`: the index of every key ever seen on the topics of a pipeline."""

import json as json_format
from dataclasses import asdict
from typing import Annotated, Any

import typer

from makewhole.cli.environment import AsJson, console, service_environment
from makewhole.config.pipeline_file import find_pipeline, history_of
from makewhole.journal.database import connect
from makewhole.key_index.rebuild import rebuild
from makewhole.key_index.status import CompactedIndex, TopicIndex, compact, indexes
from makewhole.lake.storage import Storage
from makewhole.model.text import counted, size
from makewhole.window.configuration import plain, reading_sha256
from makewhole.window.reach.limits import older_duplicates

index_app = typer.Typer(
    no_args_is_help=True,
    help="Look after the key index: every key ever seen on a topic, by which a repeat in another window is found.",
)
_console = console()


@index_app.command("status")
def show_index(pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")], json: AsJson = False) -> None:
    """Show how many runs, rows and bytes the key index of each topic has. With more than some twenty runs, merge."""
    with service_environment(), connect() as journal:
        topic_indexes = indexes(journal, Storage.from_environment(), pipeline)
    if json:
        typer.echo(json_format.dumps({"pipeline": pipeline, "topics": [_document(index) for index in topic_indexes]}))
        return
    for index in topic_indexes:
        _console.print(f"{index.point}: {_sentence(index)}")


@index_app.command("merge")
def merge_index(pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")], json: AsJson = False) -> None:
    """Merge the runs of the key index until few are left, and remove files that it has not used for two days. What is
    older than the pipeline's `history` is dropped.

    The DAG makewhole_housekeeping does this each night. Safe beside windows, twice at once, and when it is killed.
    """
    with service_environment(), connect() as journal:
        done = list(compact(journal, Storage.from_environment(), pipeline, history=history_of(pipeline)))
    if json:
        typer.echo(json_format.dumps({"pipeline": pipeline, "topics": [_document(compacted) for compacted in done]}))
        return
    for compacted in done:
        removed = counted(compacted.removed_files, "unused file")
        dropped = f"{counted(compacted.dropped_windows, 'old window')} dropped, " if compacted.dropped_windows else ""
        did = f"{dropped}{counted(compacted.merges, 'merge')}, {removed} removed"
        _console.print(f"{compacted.index.point}: {did}; {_sentence(compacted.index)}")


@index_app.command("rebuild")
def rebuild_index(pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")], json: AsJson = False) -> None:
    """Write the key index again, after files of it were lost.

    From the snapshots of the windows; where one is gone, from the index as it is. Safe beside windows.
    """
    with service_environment(), connect() as journal:
        described = find_pipeline(pipeline)
        done = rebuild(journal, Storage.from_environment(), described, reading_sha256(described))
    if json:
        typer.echo(json_format.dumps({"pipeline": pipeline, "topics": [asdict(index) for index in done]}))
        return
    for index in done:
        _console.print(
            f"{index.point}: {counted(index.keys, 'key')}, {counted(index.from_snapshots, 'window')} from snapshots, "
            f"{counted(index.from_index, 'window')} from the index as it was"
        )


def _sentence(index: TopicIndex) -> str:
    unused = f"; {counted(index.unused_files, 'unused file')}" if index.unused_files else ""
    since = "" if index.known_since is None else f"; {older_duplicates(index.known_since)}"
    return (
        f"{counted(index.rows, 'row')} of {counted(index.windows, 'window')} in {counted(index.runs, 'run')}, "
        f"{size(index.size_bytes)}{unused}{since}"
    )


def _document(index: TopicIndex | CompactedIndex) -> dict[str, Any]:
    """Return what is known as JSON has it."""
    document: dict[str, Any] = plain(index)
    return document
