"""Run `makewhole init`: write the commented file of a pipeline, from what a topic and two tables hold."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from makewhole.cli.environment import AsJson, Exit, chosen_service, console, printable, reporting_errors
from makewhole.cli.init.draft import SCHEMA_FILE, TableSeen, TopicSeen, drafted, guessed_key
from makewhole.config.connections import from_environment
from makewhole.config.json_schema import schema_text
from makewhole.config.pipeline_file import read_file
from makewhole.kafka.sample import newest_records
from makewhole.kafka.topic_readers import topic_readers
from makewhole.kinds import tables_of
from makewhole.model.connection import kafka_of
from makewhole.model.errors import ConfigurationError, Problem, RefusedError
from makewhole.model.points import PointKind, TablePoint

_PLACE = "CONNECTION:NAME"


def init(
    name: Annotated[str, typer.Argument(help="Name of the pipeline: small letters, digits and '_'.")],
    ledger: Annotated[
        str, typer.Option(metavar=_PLACE, prompt="Ledger, as connection:table", help="Table that says what was sent.")
    ],
    topic: Annotated[str, typer.Option(metavar=_PLACE, prompt="Topic, as connection:topic", help="The topic.")],
    store: Annotated[
        str, typer.Option(metavar=_PLACE, prompt="Store, as connection:table", help="Table downstream of the topic.")
    ],
    key: Annotated[
        str | None, typer.Option(help="Column that identifies a business event; guessed when not given.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(file_okay=False, help="Where the file is written; a file there is never overwritten.")
    ] = Path(),
    json: AsJson = False,
) -> None:
    """Write the file of a pipeline that observes: read a topic and two tables, ask for what is not given, and say in
    comments what was guessed. Connections are those of the environment. Exit code 0: written, and it is a good file."""
    with reporting_errors():
        chosen_service()
        file = folder / f"{name}.yaml"
        if file.exists():
            raise RefusedError(f"{file} is there already, and was left as it is; give another name or --folder")
        seen = _see_table("--ledger", ledger), _see_topic(topic), _see_table("--store", store)
        column = key or guessed_key(*seen)
        if column is None:
            raise _unfit("--key", "is not given, and no column is in both tables and the records", "Name the column")
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(drafted(name, column, *seen), encoding="utf-8")
        (folder / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
        problems = read_file(file).problems
    if json:
        document = {"file": str(file), "schema": str(folder / SCHEMA_FILE), "key": column}
        typer.echo(json_format.dumps({**document, "problems": [str(problem) for problem in problems]}))
    else:
        _show(file, [str(problem) for problem in problems])
    if problems:
        raise typer.Exit(Exit.WRONG_USAGE)


def _show(file: Path, problems: list[str]) -> None:
    out = console()
    out.print(f"{file}: written. Look at what it says is guessed, then: makewhole check --live {file}")
    for problem in problems:
        out.print(Text(printable(f"to mend: {problem}"), style="yellow"))


def _see_table(option: str, text: str) -> TableSeen:
    """Return a table as it is.

    Raises:
        ConfigurationError: there is none.
    """
    connection, table = _parts(option, text)
    point = TablePoint(name="seen", kind=PointKind.STORE, connection=connection, table=table, key=())
    with tables_of(from_environment(connection)).session(f"reading the columns of {table}") as session:
        columns = session.column_types(point)
    if not columns:
        raise _unfit(option, f"there is no table {table} behind connection {connection}", "Correct its name")
    return TableSeen(connection=connection, table=table, columns=columns)


def _see_topic(text: str) -> TopicSeen:
    connection, topic = _parts("--topic", text)
    kafka = kafka_of(from_environment(connection))
    records = newest_records(kafka, topic)
    groups = tuple(group.group for group in topic_readers(kafka, topic))
    return TopicSeen(connection=connection, topic=topic, records=records, groups=groups)


def _parts(option: str, text: str) -> tuple[str, str]:
    connection, _, name = text.partition(":")
    if not connection or not name:
        raise _unfit(option, f"{text!r} is no connection with a name", f"Write it as {_PLACE}")
    return connection, name


def _unfit(option: str, found: str, remedy: str) -> ConfigurationError:
    return ConfigurationError([Problem(file="command line", path=option, found=found, remedy=remedy)])
