"""Run `makewhole erase`: erase a key on request, everywhere makewhole wrote it, or show what would go."""

import getpass
import json as json_format
import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from makewhole.cli.environment import AsJson, Exit, console, printable, service_environment
from makewhole.config.pipeline_file import find_pipeline
from makewhole.erasure.erase_key import (
    EraseRequest,
    ErasureContext,
    ErasureDone,
    Holdings,
    erase_key,
    holdings_of,
    paths_below,
)
from makewhole.journal.database import JournalSession
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.retention.erasures import ErasedKey, require_quiet
from makewhole.journey.trace import business_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.context import as_last_read, connections_of
from makewhole.window.reach.chains import points_apart

_console = console()
_FROM_INPUT = "-"
_ROWS = {
    "findings": "finding",
    "handed_over": "handover",
    "actions": "planned action",
    "accepted": "accepted finding",
    "incidents": "incident",
}
"""The nouns of rows of the journal."""


def erase(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    key: Annotated[str, typer.Argument(help="The key, as `makewhole explain` takes it; - reads it from the input.")],
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why, for the record: a number of the request.", show_default=False)
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="NAME", help="Who asks; else the user of the shell.", show_default=False),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="POINT", help="A point that has the key, where not all are joined by hops."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and erase nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without asking once more.")] = False,
    json: AsJson = False,
) -> None:
    """Erase a key everywhere makewhole wrote it: findings, plans' actions and payloads, archives, snapshots, the key
    index, and what plans left at their targets. People's own rows and records stay. Certificates stay as they are, and
    `certificate verify` says which files an erasure changed.

    It cannot be undone. Safe when it is killed: ask again with the same key. Refused while a window is open, or a plan
    or a question waits. Exit code 1: something stays, with the reason.
    """
    if not dry_run and not reason:
        raise typer.BadParameter("say why with --reason, for the record; or --dry-run", param_hint="--reason")
    if json and not (dry_run or yes):
        raise typer.BadParameter("--json asks nothing: give --dry-run or --yes", param_hint="--json")
    text = sys.stdin.readline().rstrip("\r\n") if key == _FROM_INPUT else key
    with service_environment():
        described = find_pipeline(pipeline)
        spares = _spared(described, of)
        with JournalSession(journal_dsn()) as journal:
            with journal.transaction() as session:
                erased = business_key(as_last_read(session, described), text, spares=spares)
            request = EraseRequest(
                pipeline=described,
                key=erased,
                asked_by=by or f"{getpass.getuser()} (shell)",
                reason=reason or "-",
                spares=spares,
            )
            context = ErasureContext(
                journal=journal,
                storage=Storage.from_environment(),
                connections={} if dry_run else connections_of(described),
                signing_key=None if dry_run else signing_key_from_environment(),
            )
            done = None
            if dry_run or not yes:
                holdings = _would_go(context, request.erased)
                if not json:
                    _show_first(holdings, is_dry=dry_run)
                if not dry_run:
                    typer.confirm("Erase this for good?", abort=True)
            if not dry_run:
                done = erase_key(context, request)
                holdings = done.holdings
    if json:
        typer.echo(json_format.dumps(_document(pipeline, holdings, done), ensure_ascii=False))
    elif done is not None:
        _show(holdings, "erased")
        _show_rest(pipeline, done)
    if done is not None and done.stays:
        raise typer.Exit(Exit.GAPS_REMAIN)


def _spared(pipeline: Pipeline, of: str | None) -> tuple[str, ...]:
    """Return the points that no hops join with the one that has the key: there its text may be of another thing.

    Raises:
        ConfigurationError: there is no such point; or none is given, and not all points are joined.
    """
    if of is not None and of not in pipeline.points:
        raise _unfit(f"{of} is no point of {pipeline.name}", f"Name one of {', '.join(sorted(pipeline.points))}")
    first = next(iter(pipeline.points))
    apart = points_apart(pipeline, of or first)
    if of is None and apart:
        found = f"is not given, and no hops join {first} with {', '.join(apart)}: the key may be of another thing there"
        raise _unfit(found, "Name a point that has the key")
    return apart


def _unfit(found: str, remedy: str) -> ConfigurationError:
    return ConfigurationError([Problem(file="command line", path="--of", found=found, remedy=remedy)])


def _would_go(context: ErasureContext, key: ErasedKey) -> Holdings:
    before = paths_below(context.storage, key.pipeline)
    with context.journal.transaction() as journal:
        require_quiet(journal, key.pipeline)
    return holdings_of(context, key, before)


def _document(pipeline: str, holdings: Holdings, done: ErasureDone | None) -> dict[str, Any]:
    document: dict[str, Any] = {"pipeline": pipeline, "is_dry": done is None, **holdings.document()}
    if done is not None:
        document |= {
            "erasure": done.erasure,
            "key_mac": done.key_mac,
            "rows_at_targets": done.rows_at_targets,
            "stays": list(done.stays),
        }
    return document


def _show_first(holdings: Holdings, *, is_dry: bool) -> None:
    _show(holdings, "would go")
    if is_dry:
        _console.print("nothing was changed; the same without --dry-run erases it for good")


def _show(holdings: Holdings, did: str) -> None:
    if holdings.half_written:
        left = counted(len(holdings.half_written), "file")
        _console.print(f"{left} that attempts which died left half written, and that may have it, {did}")
    if holdings.is_empty:
        _console.print("nothing is there of this key")
        return
    rows = [counted(number, _ROWS[what]) for what, number in holdings.journal.items() if number]
    in_journal = ", ".join(rows) or "nothing"
    _console.print(f"in the journal: {in_journal} {did}")
    in_files = sum(file.rows for file in holdings.files)
    _console.print(f"in files: {counted(in_files, 'row')} of {counted(len(holdings.files), 'file')} {did}")
    for path in sorted(holdings.archives):
        if path.endswith(".log"):
            _console.print(Text(printable(f"  {counted(holdings.archives[path], 'record')} of {path}")))
    for plan in holdings.plans:
        where = ", ".join(plan.targets) or "no target"
        _console.print(Text(printable(f"plan {plan.id}: {counted(len(plan.seqs), 'action')}, at {where}")))


def _show_rest(pipeline: str, done: ErasureDone) -> None:
    _console.print(f"at targets: {counted(done.rows_at_targets, 'row')} erased")
    for sentence in done.stays:
        _console.print(Text(printable(f"stays: {sentence}"), "yellow"))
    _console.print(f"erasure {done.erasure} is recorded and signed: makewhole certificate verify {pipeline} --files")
