"""Run `makewhole keep`: remove what a pipeline has kept for as long as its file says, or show what would go."""

import json as json_format
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from makewhole.cli.environment import AsJsonLines, Exit, console, printable, service_environment
from makewhole.config.pipeline_file import find_pipeline
from makewhole.journal.database import JournalSession
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.retention.removals import NOTHING, Amount
from makewhole.model.pipeline import Pipeline
from makewhole.model.retention import Kept
from makewhole.model.text import counted, size
from makewhole.retention.house import Outcome, house_of
from makewhole.retention.keep_house import keep_house

_console = console()


def keep(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and remove nothing.")] = False,
    json: AsJsonLines = False,
) -> None:
    """Remove what was kept for as long as `keep` of the pipeline's file says: archives, files of attempts that died,
    keys and evidence of findings, rows that plans moved aside, and what plans did. Certificates stay.

    The DAG makewhole_housekeeping does this each night. Safe beside windows, twice at once, and when it is killed.
    Exit code 1: something stays that was to go, with the reason.
    """
    with service_environment():
        described = find_pipeline(pipeline)
        with JournalSession(journal_dsn()) as journal:
            outcomes = list(keep_house(house_of(described, journal, is_dry=dry_run)))
    if json:
        for outcome in outcomes:
            typer.echo(json_format.dumps({"pipeline": pipeline, "is_dry": dry_run, **outcome.document()}))
    else:
        _show(described, outcomes, "would go" if dry_run else "removed")
    if any(outcome.stays for outcome in outcomes):
        raise typer.Exit(Exit.GAPS_REMAIN)


def _show(pipeline: Pipeline, outcomes: Sequence[Outcome], did: str) -> None:
    if not list(pipeline.keep):
        _console.print(f"{pipeline.name} keeps everything; `keep` in its file says what goes after which time")
    for kind, _ in pipeline.keep:
        of_kind = [outcome for outcome in outcomes if outcome.kind is kind]
        gone = [outcome for outcome in of_kind if outcome.stays is None]
        amount = sum((outcome.amount for outcome in gone), NOTHING)
        of_what = "plan" if kind in (Kept.EFFECTS, Kept.QUARANTINE) else "window"
        _console.print(f"{kind.value}: {_amount(amount)} of {counted(len(gone), of_what)} {did}")
    for outcome in outcomes:
        if outcome.stays is not None:
            _console.print(Text(printable(f"{outcome.kind.value} of {outcome.plan} stay: {outcome.stays}"), "yellow"))


def _amount(amount: Amount) -> str:
    files = f"{counted(amount.files, 'file')} ({size(amount.size_bytes)})" if amount.files else ""
    rows = counted(amount.rows, "row") if amount.rows or not files else ""
    return " and ".join(filter(None, (files, rows)))
