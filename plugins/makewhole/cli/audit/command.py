"""Run `makewhole audit TOPIC --bootstrap …`: audit a topic's log on any cluster, read-only."""

import json as json_format
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from makewhole.audit.build import audit_topic
from makewhole.audit.report import AuditReport, Level
from makewhole.cli.audit.client_properties import client_properties
from makewhole.cli.audit.view import show
from makewhole.cli.environment import Exit, console, reporting_errors
from makewhole.kafka.scan.topic import ScanProgress as OnProgress
from makewhole.kafka.scan.topic import ScanRequest
from makewhole.model.connection import KafkaConnection

_EARLIEST = "earliest"


def audit(
    topic: Annotated[str, typer.Argument(help="Name of the topic.")],
    bootstrap: Annotated[
        str | None,
        typer.Option(
            help="host:port of one or more brokers, comma separated.", metavar="HOST:PORT", show_default=False
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Client properties, name=value a line: librdkafka's names or Java's (sasl.jaas.config, PEM stores).",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            help="One more property; again for more. Others see it in the list of processes: secrets go into a file.",
            metavar="NAME=VALUE",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Only this partition; again for more. All when not given.", show_default=False),
    ] = None,
    start: Annotated[
        str, typer.Option("--from", help="First offset to look at, in every partition.", metavar="OFFSET|earliest")
    ] = _EARLIEST,
    top: Annotated[int, typer.Option(min=1, help="So many producers and places in each list; --json has more.")] = 10,
    no_crc: Annotated[
        bool, typer.Option("--no-crc", help="Do not check the batches' checksums: a little faster, less is known.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the report.")] = False,
) -> None:
    """Show what a topic's log proves by itself: read-only, on any cluster.

    Reads every batch header once, opens no record, needs no pipeline. Reports what
    every offset is, whether producers' numbering has gaps or repeats, which
    transactions committed, aborted, are open or hang, who led when, how batches
    and rates look, and what the topic's settings can and cannot guarantee.

    Exit codes: 0 nothing found, 1 gaps, repeats or a hanging transaction found,
    2 wrong usage, 3 not everything could be read, 4 could not run.

    Rights: Read, Describe and DescribeConfigs on the topic. Describe on
    __transaction_state and on transactional ids, too, to distinguish transactions
    that hang from those that are merely open.
    """
    with reporting_errors():
        properties = client_properties(bootstrap, config, given or ())
        connection = KafkaConnection(id="given by options", properties=properties)
        wanted = ScanRequest(partitions=partition or (), from_offset=_offset(start), is_crc_checked=not no_crc)
        with _progress(topic) as on_progress:
            report = audit_topic(connection, topic, wanted, on_progress)
    if json:
        typer.echo(json_format.dumps(report.to_json(), ensure_ascii=False))
    else:
        show(console(), report, top)
    raise typer.Exit(exit_code(report))


def exit_code(report: AuditReport) -> Exit:
    """Return the exit code of a report: what was found counts more than what could not be read."""
    levels = {finding.level for finding in report.findings}
    if Level.FOUND in levels:
        return Exit.GAPS_REMAIN
    return Exit.NOT_KNOWN if Level.NOT_KNOWN in levels else Exit.CERTIFIED


def _offset(text: str) -> int | None:
    if text == _EARLIEST:
        return None
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is neither an offset nor {_EARLIEST!r}", param_hint="--from")
    return int(text)


@contextmanager
def _progress(topic: str) -> Iterator[OnProgress | None]:
    """Show a progress bar when standard error is a terminal."""
    errors = console(stderr=True)
    if not errors.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(f"offsets of {topic}", total=None)

        def on_progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield on_progress
