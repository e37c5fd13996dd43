"""Run `makewhole findings`: list every key that was not matched, what Kafka is about to delete first."""

import json as json_format
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.documents import chosen_windows, finding_document
from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.cli.report import PipelineName, WindowNumber
from makewhole.compensation.planning.deadlines import Deadlines, read_deadlines
from makewhole.journal import window_results
from makewhole.journal.database import connect
from makewhole.journal.window_results import JudgedFinding
from makewhole.kafka.retention import Deadline, RecordRetention
from makewhole.model.errors import MakewholeError
from makewhole.model.verdict import Cause, Finding
from makewhole.model.window import Window
from makewhole.window.context import connections_of, find_pipeline

_console = console()
_warnings = console(stderr=True)
_HOUR = 3600.0
_DAY = 24 * _HOUR

RankedFinding = tuple[Window, JudgedFinding, Deadline | None]


def findings(
    pipeline: PipelineName,
    window: WindowNumber = None,
    revision: Annotated[
        int | None, typer.Option(help="Of this revision; the newest when not given.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many lines for people; --json prints all.")] = 50,
    json: AsJsonLines = False,
) -> None:
    """List every key that was not simply matched, with cause, evidence, and what became of it.

    Open ones come first, by the time until Kafka may delete their original. What it deletes stays in the window's
    snapshot, from which compensation takes it.
    """
    if revision is not None and window is None:
        raise typer.BadParameter("--revision goes with --window")
    with service_environment():
        with connect() as journal:
            known = [
                (found, item)
                for found in chosen_windows(journal, pipeline, window, revision)
                for item in window_results.findings(journal, found)
            ]
        ranked = _ranked(known, _deadlines(pipeline, known))
    if json:
        for found in ranked:
            typer.echo(json_format.dumps(finding_document(*found), ensure_ascii=False))
        return
    if not ranked:
        _console.print(f"{pipeline}: no findings")
        return
    print_table(_console, _table(ranked[:limit], datetime.now(UTC)))
    if len(ranked) > limit:
        _console.print(f"and {len(ranked) - limit} more; --limit {len(ranked)} or --json shows them all")


def _deadlines(pipeline: str, known: list[tuple[Window, JudgedFinding]]) -> Deadlines:
    """Ask the brokers when they delete, only when something is open; findings are shown without it when they do not
    answer."""
    nothing = Deadlines(retention={}, silent={})
    if not any(_is_open(item) for _, item in known):
        return nothing
    try:
        described = find_pipeline(pipeline)
        found = read_deadlines(described, connections_of(described))
    except MakewholeError as error:
        _warnings.print(Text(printable(f"not ranked by what Kafka deletes first: {error}"), style="yellow"))
        return nothing
    for reason in found.silent.values():
        _warnings.print(Text(printable(f"not ranked by what Kafka deletes first: {reason}"), style="yellow"))
    return found


def _ranked(known: list[tuple[Window, JudgedFinding]], deadlines: Deadlines) -> list[RankedFinding]:
    """Sort open findings first, the most urgent at the top; the others stay as the journal has them."""
    found = [
        (window, item, deadlines.of(item.finding.hop, item.finding.evidence) if _is_open(item) else None)
        for window, item in known
    ]
    return sorted(found, key=_rank)


def _rank(found: RankedFinding) -> tuple[bool, tuple[int, datetime]]:
    _, item, deadline = found
    return not _is_open(item), (deadline or Deadline(fate=RecordRetention.KEPT)).urgency


def _is_open(item: JudgedFinding) -> bool:
    return item.finding.verdict.is_gap and item.outcome in ("open", "refused")


def _table(found: list[RankedFinding], now: datetime) -> Table:
    has_deadlines = any(deadline is not None for _, _, deadline in found)
    headings = ["window", "hop", "verdict", "cause", "key", *(["in Kafka"] if has_deadlines else []), "outcome"]
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for window, item, deadline in found:
        finding = item.finding
        cells = [str(window.number), finding.hop, finding.verdict.value, _cause_text(finding), finding.key]
        row = [Text(printable(cell)) for cell in cells]
        row += [_deadline_text(deadline, now)] if has_deadlines else []
        table.add_row(*row, Text(printable(item.outcome + (f": {item.reason}" if item.reason else ""))))
    return table


def _cause_text(finding: Finding) -> str:
    """Return the cause; of a record that the consumer group has not reached also where the group stands."""
    if finding.cause not in (Cause.NOT_CONSUMED, Cause.NOT_YET_CONSUMED) or "group" not in finding.evidence:
        return finding.cause.value
    standing = finding.evidence.get("group_committed", {})
    places = ", ".join(f"{at}:{'no offset' if offset is None else offset}" for at, offset in sorted(standing.items()))
    return f"{finding.cause.value}, group {finding.evidence['group']} at {places}"


def _deadline_text(deadline: Deadline | None, now: datetime) -> Text:
    """Return how long Kafka still has the original, red within a day."""
    if deadline is None:
        return Text("")
    if deadline.at is None:
        return Text({RecordRetention.DELETED: "deleted", RecordRetention.KEPT: "kept"}.get(deadline.fate, "not known"))
    left = (deadline.at - now).total_seconds()
    return Text(left_text(left, deadline), style="red" if left < _DAY else "")


def left_text(seconds: float, deadline: Deadline) -> str:
    """Return the time left in words: `3 h left`, `2 days left`, `any moment`."""
    if seconds <= 0:
        return "any moment"
    amount = f"{seconds / _DAY:.0f} days" if seconds >= 2 * _DAY else f"{seconds / _HOUR:.0f} h"
    if seconds < _HOUR:
        amount = f"{max(1, round(seconds / 60))} min"
    return f"{amount} left" + (", or less" if deadline.may_be_earlier else "")
