"""Run `makewhole findings`: list every key that was not matched, what Kafka is about to delete first."""

import heapq
import json as json_format
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.documents import chosen_windows, finding_document, shown_values
from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.cli.report import PipelineName, WindowNumber
from makewhole.compensation.planning.deadlines import Deadlines, read_deadlines
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results import hop_results
from makewhole.kafka.retention import Deadline, RecordRetention
from makewhole.model.acceptance import finding_id
from makewhole.model.errors import MakewholeError
from makewhole.model.incidents.sentences import prepared_transaction_text
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.context import connections_of, find_pipeline

_console = console()
_warnings = console(stderr=True)
_HOUR = 3600.0
_DAY = 24 * _HOUR
_SORTED_MOST = 10_000

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
    """List every key that was not simply matched, with cause, evidence, and what became of it; also those that a person
    has accepted.

    Open ones come first, by the time until Kafka may delete their original; of more than 10,000, --json prints all by
    hop, verdict and key. What Kafka deletes stays in the window's snapshot, from which compensation takes it.
    """
    if revision is not None and window is None:
        raise typer.BadParameter("--revision goes with --window")
    with service_environment(), connect() as journal:
        chosen = list(chosen_windows(journal, pipeline, window, revision))
        counted = Counter[tuple[str, str]]()
        for chosen_window in chosen:
            counted.update(window_findings.count_outcomes(journal, chosen_window))
        deadlines = _deadlines(pipeline, has_open=any(_is_left(*kind) for kind in counted))
        ranked = _with_deadlines(journal, chosen, deadlines)
        if json:
            shown = shown_values(pipeline)
            for ranked_finding in sorted(ranked, key=_rank) if counted.total() <= _SORTED_MOST else ranked:
                typer.echo(json_format.dumps(finding_document(*ranked_finding, shown=shown), ensure_ascii=False))
        elif not counted:
            _console.print(f"{pipeline}: no findings")
        else:
            print_table(_console, _table(heapq.nsmallest(limit, ranked, key=_rank), datetime.now(UTC)))
            if counted.total() > limit:
                more = counted.total() - limit
                _console.print(f"and {more} more; --limit {counted.total()} or --json shows them all")
        for chosen_window in chosen:
            _warn_of_left_out(journal, chosen_window)


def _warn_of_left_out(journal: PgConnection, window: Window) -> None:
    """Print where the findings are that the journal did not take, because there are too many."""
    left = sum(window_findings.count_left_out(journal, window).values())
    if left:
        results = hop_results.results(journal, window)
        kept = sum(window_findings.count_outcomes(journal, window).values())
        files = [path for _, result in sorted(results.items()) for path in result.files.get("findings", ())]
        where = f"; all are in {', '.join(files)}, below the storage's root" if files else ""
        text = f"{window.label}: {kept:,} of {kept + left:,} findings are in the journal{where}"
        _warnings.print(Text(printable(text), style="yellow"))


def _deadlines(pipeline: str, *, has_open: bool) -> Deadlines:
    """Ask the brokers when they delete, only when something is open; findings are shown without it when they do not
    answer."""
    nothing = Deadlines(retention={}, silent={})
    if not has_open:
        return nothing
    try:
        described = find_pipeline(pipeline)
        deadlines = read_deadlines(described, connections_of(described))
    except MakewholeError as error:
        _warnings.print(Text(printable(f"not ranked by what Kafka deletes first: {error}"), style="yellow"))
        return nothing
    for reason in deadlines.silent.values():
        _warnings.print(Text(printable(f"not ranked by what Kafka deletes first: {reason}"), style="yellow"))
    return deadlines


def _with_deadlines(journal: PgConnection, chosen: Iterable[Window], deadlines: Deadlines) -> Iterator[RankedFinding]:
    """Yield the findings of windows by hop, verdict and key, one at a time."""
    for window in chosen:
        for item in StoredFindings(window=window).in_order(journal):
            yield window, item, deadlines.of(item.finding.hop, item.finding.evidence) if _is_open(item) else None


def _rank(ranked_finding: RankedFinding) -> tuple[bool, tuple[int, datetime]]:
    _, item, deadline = ranked_finding
    return not _is_open(item), (deadline or Deadline(fate=RecordRetention.KEPT)).urgency


def _is_open(item: JudgedFinding) -> bool:
    return _is_left(item.finding.verdict.value, item.outcome)


def _is_left(verdict: str, outcome: str) -> bool:
    """Return whether a finding of this verdict and outcome is a gap that is still there."""
    return Verdict(verdict).is_gap and outcome in ("open", "refused")


def _table(ranked: list[RankedFinding], now: datetime) -> Table:
    has_deadlines = any(deadline is not None for _, _, deadline in ranked)
    headings = ["window", "hop", "verdict", "cause", "key", "id", *(["in Kafka"] if has_deadlines else []), "outcome"]
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for window, item, deadline in ranked:
        finding = item.finding
        named = finding_id(finding.hop, finding.key_hash)
        cells = [str(window.number), finding.hop, finding.verdict.value, _cause_text(finding), finding.key, named]
        row = [Text(printable(cell)) for cell in cells]
        row += [_deadline_text(deadline, now)] if has_deadlines else []
        table.add_row(*row, Text(printable(item.outcome + (f": {item.reason}" if item.reason else ""))))
    return table


def _cause_text(finding: Finding) -> str:
    """Return the cause; of a record that what loads the store has not reached also where that stands, and of a key in
    doubt the oldest transaction that may hold it."""
    evidence = finding.evidence
    if finding.cause is Cause.IN_DOUBT:
        return f"{finding.cause.value}, {prepared_transaction_text(evidence['in_doubt'][0])}"
    if finding.cause not in (Cause.NOT_CONSUMED, Cause.NOT_YET_CONSUMED):
        return finding.cause.value
    if "progress" in evidence:
        return f"{finding.cause.value}, sink at {_places_text(evidence['progress_offsets'])} by {evidence['progress']}"
    if "group" not in evidence:
        return finding.cause.value
    return f"{finding.cause.value}, group {evidence['group']} at {_places_text(evidence.get('group_committed', {}))}"


def _places_text(standing: Mapping[str, int | None]) -> str:
    return ", ".join(f"{at}:{'no offset' if offset is None else offset}" for at, offset in sorted(standing.items()))


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
