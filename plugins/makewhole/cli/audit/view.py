"""Print an audit for people, at most 100 columns wide: problems, then contents, then guarantees."""

import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from makewhole.audit.report import AuditFinding, AuditReport, BatchesReport, Guarantee, Level, SpreadReport, TotalReport
from makewhole.cli.audit.plot import bars, rate_plot
from makewhole.cli.audit.tables import (
    breaks_table,
    epoch_lines,
    longest_table,
    offsets_table,
    open_table,
    producers_table,
)
from makewhole.cli.environment import printable
from makewhole.model.text import counted, duration, moment, number, share, size

_WIDEST, _NARROWEST = 100, 60
_ANY_WIDTH = 10_000
_STYLES = {Level.FOUND: "bold red", Level.NOT_KNOWN: "bold yellow", Level.WEAK: "yellow", Level.HOLDS: "green"}
_SIGNS = {Level.FOUND: "FOUND", Level.NOT_KNOWN: "NOT KNOWN", Level.WEAK: "WEAK", Level.HOLDS: "holds"}
_EPOCHS = 6


class _ReportPage:
    """A writer of paragraphs and tables, wrapped to the page's width."""

    def __init__(self, out: Console) -> None:
        self.width = max(_NARROWEST, min(out.width, _WIDEST))
        self._out = out

    def heading(self, text: str) -> None:
        self._out.print()
        self._out.print(Text(text, style="bold"))

    def paragraph(self, text: str, *, style: str = "", sign: str = "", indent: int = 0) -> None:
        """Print a wrapped text; `sign` stands before the first line, in the style, the others are indented."""
        first = sign or " " * indent
        lines = textwrap.wrap(
            printable(text), self.width, initial_indent=" " * len(first), subsequent_indent=" " * indent
        )
        for index, line in enumerate(lines):
            mark = first if index == 0 else " " * indent
            self._out.print(Text.assemble((mark, style), (line[len(mark) :], "" if sign else style)))

    def lines(self, lines: Iterable[str], style: str = "") -> None:
        for line in lines:
            self._out.print(Text(printable(line), style=style))

    def table(self, table: Table) -> None:
        """Print a table without cutting numbers: where a terminal is narrower, it breaks the lines."""
        wide = self._out.options.update(width=_ANY_WIDTH)
        before = self._out.width
        self._out.width = max(before, Measurement.get(self._out, wide, table).maximum)
        self._out.print(table)
        self._out.width = before


def show(out: Console, report: AuditReport, top: int) -> None:
    """Print the whole report; `top` rows of each list."""
    page = _ReportPage(out)
    _headline(page, report)
    serious = [finding for finding in report.findings if finding.level in (Level.FOUND, Level.NOT_KNOWN)]
    for finding in serious:
        _finding(page, finding)
    _offsets(page, report)
    _producers(page, report, top)
    _transactions(page, report, top)
    _epochs(page, report, top)
    _batches(page, report)
    _rates(page, report)
    notes = [finding for finding in report.findings if finding not in serious]
    if notes:
        page.heading("Good to know")
    for finding in notes:
        _note(page, finding)
    _guarantees(page, report)


def _headline(page: _ReportPage, report: AuditReport) -> None:
    total = report.batches.total
    what = f"{report.topic}: {counted(len(report.partitions), 'partition')}, {counted(total.records, 'record')}, "
    page.paragraph(what + f"{size(total.size_bytes)} as stored", style="bold")
    checked = "checksums checked" if report.is_crc_checked else "checksums NOT checked"
    since = "" if report.from_offset is None else f" from offset {number(report.from_offset)} on"
    page.paragraph(
        f"topic id {report.topic_id} at {report.bootstrap}, {moment(report.audited_at_ms)} UTC; read{since} in "
        f"{report.elapsed_seconds:.1f} s, {checked}, no record opened, nothing written"
    )
    page.lines([""])
    anomalies = [finding for finding in report.findings if finding.level is Level.FOUND]
    unknown = [finding for finding in report.findings if finding.level is Level.NOT_KNOWN]
    if anomalies:
        page.paragraph(f"{counted(len(anomalies), 'thing')} found that should not be:", style=_STYLES[Level.FOUND])
    elif unknown:
        page.paragraph("Not everything could be read:", style=_STYLES[Level.NOT_KNOWN])
    else:
        page.paragraph("Nothing found that should not be. That is no proof that nothing was lost.", style="bold green")


def _finding(page: _ReportPage, finding: AuditFinding) -> None:
    sign = f"{_SIGNS[finding.level]}  "
    page.paragraph(f"{finding.what}.", sign=sign, style=_STYLES[finding.level], indent=len(sign))
    page.paragraph(finding.means, indent=len(sign))
    if finding.unproven:
        page.paragraph(f"Not proven: {finding.unproven}", indent=len(sign))
    if finding.todo:
        page.paragraph(f"Do: {finding.todo}", indent=len(sign))


def _note(page: _ReportPage, finding: AuditFinding) -> None:
    parts = [f"{finding.what}.", finding.means]
    parts += [f"Not proven: {finding.unproven}"] if finding.unproven else []
    parts += [f"Do: {finding.todo}"] if finding.todo else []
    page.paragraph(" ".join(parts), sign="- ", indent=2)


def _offsets(page: _ReportPage, report: AuditReport) -> None:
    page.heading("What every offset is")
    table, meanings = offsets_table(report)
    page.table(table)
    page.paragraph("; ".join(meanings), style="dim")


def _producers(page: _ReportPage, report: AuditReport, top: int) -> None:
    sequences = report.sequences
    if not sequences.producers:
        return
    page.heading(
        f"Producers: {number(sequences.producers)} with {counted(sequences.epochs, 'epoch')}, "
        f"{counted(sequences.gaps, 'gap')}, {counted(sequences.repeats, 'repeat')}"
    )
    page.table(producers_table(report, top))
    _more(page, sequences.producers - min(top, len(sequences.listed)), "producer")
    if sequences.breaks:
        page.heading("Where numbering breaks, the largest first")
        page.table(breaks_table(report, top))
        places = len(sequences.breaks) + sequences.breaks_left_out
        _more(page, places - min(top, len(sequences.breaks)), "place")


def _more(page: _ReportPage, count: int, thing: str) -> None:
    if count > 0:
        page.lines([f"and {counted(count, f'more {thing}', f'more {thing}s')}; --top or --json shows them"], "dim")


def _transactions(page: _ReportPage, report: AuditReport, top: int) -> None:
    transactions = report.transactions
    if not (transactions.committed.count or transactions.aborted.count or transactions.open):
        return
    page.heading(
        f"Transactions, counted per partition: {number(transactions.committed.count)} committed, "
        f"{number(transactions.aborted.count)} aborted, {number(len(transactions.open))} open"
    )
    each = transactions.committed.records_each
    if each.count:
        took = duration(transactions.committed.longest_ms)
        page.lines([f"records in a committed one: {_spread(each)}; the longest took {took}"])
    if transactions.open:
        page.table(open_table(report))
    longest = [transaction for transaction in transactions.longest if transaction.duration_ms > 0]
    if longest:
        page.lines(
            ["the longest, from the first batch to the marker by their timestamps (a producer sets its own):"], "dim"
        )
        page.table(longest_table(report, min(top, 5)))


def _epochs(page: _ReportPage, report: AuditReport, top: int) -> None:
    lines = epoch_lines(report.partitions, _EPOCHS)
    if lines:
        page.heading("Leader epochs: who led, from which offset on")
        page.lines(lines[:top])
        _more(page, len(lines) - top, "partition")


def _batches(page: _ReportPage, report: AuditReport) -> None:
    batches = report.batches
    if not batches.total.batches:
        return
    page.heading(f"Batches: {number(batches.total.batches)}")
    page.paragraph(_totals(batches.codecs.items(), batches), sign="codecs   ", indent=9)
    page.paragraph(_totals(batches.kinds.items(), batches), sign="senders  ", indent=9)
    page.lines([f"records  {_spread(batches.records_per_batch)}  {_histogram(batches.records_per_batch)}"])
    mean = batches.bytes_per_batch.total / max(batches.bytes_per_batch.count, 1)
    least, most = batches.bytes_per_batch.least or 0, batches.bytes_per_batch.most or 0
    page.lines(
        [f"bytes    {size(least)} to {size(most)}, {size(mean)} on average  {_histogram(batches.bytes_per_batch)}"]
    )


def _totals(totals: Iterable[tuple[str, TotalReport]], batches: BatchesReport) -> str:
    whole = batches.total.records
    ordered: Sequence[tuple[str, TotalReport]] = sorted(totals, key=lambda pair: -pair[1].records)
    return ", ".join(f"{name} {number(total.records)} ({share(total.records, whole)})" for name, total in ordered)


def _spread(spread: SpreadReport) -> str:
    if spread.least == spread.most:
        return number(spread.least or 0)
    mean = spread.total / max(spread.count, 1)
    return f"{number(spread.least or 0)} to {number(spread.most or 0)}, {mean:,.1f} on average"


def _histogram(spread: SpreadReport) -> str:
    """Return the counts by powers of two as blocks, from the smallest class to the largest."""
    if len(spread.at_most) < 2:
        return ""
    classes = dict(spread.at_most)
    lowest, highest = spread.at_most[0][0], spread.at_most[-1][0]
    counts, bound = [], lowest
    while bound <= highest:
        counts.append(classes.get(bound, 0))
        bound = 2 * bound + 1
    return f"≤{number(lowest)} {bars(counts)} ≤{number(highest)}"


def _rates(page: _ReportPage, report: AuditReport) -> None:
    times = report.times
    lines = rate_plot(times.rates, times.width_ms, page.width)
    if lines:
        page.heading(f"Records over time: {moment(times.oldest_ms)} to {moment(times.newest_ms)} UTC")
        page.lines(lines)


def _guarantees(page: _ReportPage, report: AuditReport) -> None:
    page.heading("What the settings can guarantee, and what not")
    if report.settings_refusal is not None:
        page.paragraph(f"The settings may not be read: {report.settings_refusal}", style="yellow")
    for guarantee in report.guarantees:
        _guarantee(page, guarantee)


def _guarantee(page: _ReportPage, guarantee: Guarantee) -> None:
    sign = f"{_SIGNS.get(guarantee.level, 'note'):<6}"
    set_by = {"default": " (default)", "broker": " (set at the broker)"}.get(guarantee.source, "")
    text = f"{guarantee.setting}={guarantee.value}{set_by}: {guarantee.says}"
    if guarantee.todo and guarantee.level is Level.WEAK:
        text += f" Better: {guarantee.todo}."
    page.paragraph(text, sign=sign, style=_STYLES.get(guarantee.level, ""), indent=len(sign))
