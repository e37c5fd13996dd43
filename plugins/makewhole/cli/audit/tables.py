"""Build the tables of an audit for people: exact numbers, without columns that are all zero."""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from makewhole.audit.report import AuditReport, PartitionReport, ProducerReport
from makewhole.model.text import counted, duration, moment, number
from makewhole.model.window import Accounting

_PARTITIONS = 16
_TEXTS = ("what", "state", "transactional id", "ended", "at", "last write", "partition", "newest epoch: numbers")
_MEANINGS = {
    "data": "what committed readers get",
    "control": "transaction markers: each takes an offset",
    "aborted": "records of aborted transactions",
    "compacted": "compaction took the record",
    "expired": "deleted from the log's beginning",
    "undecodable": "cannot be read",
    "held back": "behind the stable offset: an open transaction",
}


def offsets_table(report: AuditReport) -> tuple[Table, list[str]]:
    """Return the table of what every offset is, by partition, and the meanings of its columns."""
    cells = [_cells(one.offsets, one.tail.end - one.tail.start) for one in report.partitions]
    total = {name: sum(one[name] for one in cells) for name in cells[0]} if cells else {}
    shown = [name for name in _MEANINGS if name == "data" or total.get(name)]
    table = _table("partition", "offsets", *shown)
    chosen = _chosen_partitions(report.partitions)
    for index in chosen:
        one = report.partitions[index]
        table.add_row(_name(one), number(_span(one)), *(_cell(cells[index][name]) for name in shown))
    if len(report.partitions) > len(chosen):
        table.add_row(f"and {len(report.partitions) - len(chosen)} more")
    if len(report.partitions) > 1:
        spans = sum(_span(one) for one in report.partitions)
        table.add_row("all", number(spans), *(_cell(total[name]) for name in shown), style="bold")
    return table, [f"{name}: {_MEANINGS[name]}" for name in shown]


def _cells(offsets: Accounting, held_back: int) -> dict[str, int]:
    found = {name: getattr(offsets, name) for name in _MEANINGS if name != "held back"}
    return {**found, "held back": held_back}


def _span(one: PartitionReport) -> int:
    return one.offsets.span + one.tail.end - one.tail.start


def _name(one: PartitionReport) -> str:
    return f"{one.partition} (not read)" if one.failure is not None else str(one.partition)


def _cell(value: int) -> str:
    return number(value) if value else "·"


def _chosen_partitions(partitions: Sequence[PartitionReport]) -> list[int]:
    """Return the indexes of the partitions that fit the page, those with problems first."""
    ranked = sorted(
        range(len(partitions)),
        key=lambda index: (
            partitions[index].failure is None,
            not partitions[index].offsets.undecodable,
            not (partitions[index].gaps or partitions[index].repeats or partitions[index].missing_heads),
            index,
        ),
    )
    return sorted(ranked[:_PARTITIONS])


def producers_table(report: AuditReport, top: int) -> Table:
    """Return the table of the worst producers and their sequence numbers."""
    table = _table(
        "producer", "partitions", "epochs", "records", "newest epoch: numbers", "gaps", "repeats", "last write"
    )
    for one in report.sequences.listed[:top]:
        table.add_row(
            str(one.producer_id),
            _few(one.partitions),
            number(one.epoch_count),
            number(one.records),
            _numbers(one),
            _broken(one.gaps, one.missing, one.missing_heads),
            _broken(one.repeats, one.repeated),
            moment(one.last_timestamp_ms),
        )
    return table


def _few(partitions: tuple[int, ...]) -> str:
    return ",".join(map(str, partitions)) if len(partitions) <= 3 else f"{len(partitions)} of them"


def _numbers(one: ProducerReport) -> str:
    newest = max(one.epochs, key=lambda run: (run.epoch, run.last_offset))
    place = f" (p {newest.partition})" if len(one.partitions) > 1 else ""
    return f"{newest.epoch}: {newest.first_sequence}–{newest.last_sequence}{place}"


def _broken(places: int, records: int, heads: int = 0) -> Text:
    if not places and not heads:
        return Text("·")
    parts = [f"{number(places)} ({number(records)})"] if places else []
    return Text(", ".join(parts + ([counted(heads, "head")] if heads else [])), style="red")


def breaks_table(report: AuditReport, top: int) -> Table:
    """Return the table of the largest breaks in producers' sequence numbers."""
    table = _table("what", "partition", "offset", "producer", "epoch", "expected", "found", "records")
    for one in report.sequences.breaks[:top]:
        numbers = (one.partition, one.offset, one.producer_id, one.producer_epoch, one.expected, one.found)
        table.add_row(one.kind.replace("_", " "), *map(str, numbers), number(one.records))
    return table


def open_table(report: AuditReport) -> Table:
    """Return the table of the transactions that are open now."""
    table = _table("partition", "offset", "producer", "epoch", "transactional id", "state", "open for", "timeout")
    for one in report.transactions.open:
        since = one.started_at_ms or one.last_timestamp_ms
        table.add_row(
            str(one.partition),
            number(one.first_offset),
            str(one.producer_id),
            str(one.producer_epoch),
            Text(one.transactional_id or "unknown", overflow="ellipsis"),
            Text("hangs" if one.is_hanging else one.state or "?", style="red" if one.is_hanging else ""),
            duration(max(report.audited_at_ms - since, 0)),
            "?" if one.timeout_ms is None else duration(one.timeout_ms),
        )
    return table


def longest_table(report: AuditReport, top: int) -> Table:
    """Return the table of the transactions that took longest from their first batch to their marker."""
    table = _table("partition", "offsets", "producer", "epoch", "ended", "records", "took", "at")
    for one in report.transactions.longest[:top]:
        table.add_row(
            str(one.partition),
            f"{one.first_offset}–{one.end_offset - 1}",
            str(one.producer_id),
            str(one.producer_epoch),
            "committed" if one.is_commit else "aborted",
            number(one.records),
            duration(one.duration_ms),
            moment(one.ended_at_ms),
        )
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _TEXTS else "right", no_wrap=True)
    return table


def epoch_lines(partitions: Iterable[PartitionReport], limit: int) -> list[str]:
    """Return the leader epochs of partitions that had several, newest last."""
    lines = []
    for one in partitions:
        if len(one.leader_epochs) > 1:
            spans = [f"{span.epoch} from {number(span.start_offset)}" for span in one.leader_epochs]
            shown = spans if len(spans) <= limit else [spans[0], f"… {len(spans) - limit} more …", *spans[-limit + 1 :]]
            lines.append(f"partition {one.partition}: {', '.join(shown)}")
    return lines
