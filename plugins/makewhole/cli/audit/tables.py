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
    cells = [_cells(partition.offsets, partition.tail.end - partition.tail.start) for partition in report.partitions]
    total = {name: sum(row[name] for row in cells) for name in cells[0]} if cells else {}
    shown = [name for name in _MEANINGS if name == "data" or total.get(name)]
    table = _table("partition", "offsets", *shown)
    chosen = _chosen_partitions(report.partitions)
    for index in chosen:
        partition = report.partitions[index]
        table.add_row(_name(partition), number(_span(partition)), *(_cell(cells[index][name]) for name in shown))
    if len(report.partitions) > len(chosen):
        table.add_row(f"and {len(report.partitions) - len(chosen)} more")
    if len(report.partitions) > 1:
        spans = sum(_span(partition) for partition in report.partitions)
        table.add_row("all", number(spans), *(_cell(total[name]) for name in shown), style="bold")
    return table, [f"{name}: {_MEANINGS[name]}" for name in shown]


def _cells(offsets: Accounting, held_back: int) -> dict[str, int]:
    counts = {name: getattr(offsets, name) for name in _MEANINGS if name != "held back"}
    return {**counts, "held back": held_back}


def _span(partition: PartitionReport) -> int:
    return partition.offsets.span + partition.tail.end - partition.tail.start


def _name(partition: PartitionReport) -> str:
    return f"{partition.partition} (not read)" if partition.failure is not None else str(partition.partition)


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
    for producer in report.sequences.listed[:top]:
        table.add_row(
            str(producer.producer_id),
            _few(producer.partitions),
            number(producer.epoch_count),
            number(producer.records),
            _numbers(producer),
            _broken(producer.gaps, producer.missing, producer.missing_heads),
            _broken(producer.repeats, producer.repeated),
            moment(producer.last_timestamp_ms),
        )
    return table


def _few(partitions: tuple[int, ...]) -> str:
    return ",".join(map(str, partitions)) if len(partitions) <= 3 else f"{len(partitions)} of them"


def _numbers(producer: ProducerReport) -> str:
    newest = max(producer.epochs, key=lambda run: (run.epoch, run.last_offset))
    place = f" (p {newest.partition})" if len(producer.partitions) > 1 else ""
    return f"{newest.epoch}: {newest.first_sequence}–{newest.last_sequence}{place}"


def _broken(places: int, records: int, heads: int = 0) -> Text:
    if not places and not heads:
        return Text("·")
    parts = [f"{number(places)} ({number(records)})"] if places else []
    return Text(", ".join(parts + ([counted(heads, "head")] if heads else [])), style="red")


def breaks_table(report: AuditReport, top: int) -> Table:
    """Return the table of the largest breaks in producers' sequence numbers."""
    table = _table("what", "partition", "offset", "producer", "epoch", "expected", "found", "records")
    for place in report.sequences.breaks[:top]:
        numbers = (place.partition, place.offset, place.producer_id, place.producer_epoch, place.expected, place.found)
        table.add_row(place.kind.replace("_", " "), *map(str, numbers), number(place.records))
    return table


def open_table(report: AuditReport) -> Table:
    """Return the table of the transactions that are open now."""
    table = _table("partition", "offset", "producer", "epoch", "transactional id", "state", "open for", "timeout")
    for transaction in report.transactions.open:
        since = transaction.started_at_ms or transaction.last_timestamp_ms
        state, style = ("hangs", "red") if transaction.is_hanging else (transaction.state or "?", "")
        table.add_row(
            str(transaction.partition),
            number(transaction.first_offset),
            str(transaction.producer_id),
            str(transaction.producer_epoch),
            Text(transaction.transactional_id or "unknown", overflow="ellipsis"),
            Text(state, style=style),
            duration(max(report.audited_at_ms - since, 0)),
            "?" if transaction.timeout_ms is None else duration(transaction.timeout_ms),
        )
    return table


def longest_table(report: AuditReport, top: int) -> Table:
    """Return the table of the transactions that took longest from their first batch to their marker."""
    table = _table("partition", "offsets", "producer", "epoch", "ended", "records", "took", "at")
    for transaction in report.transactions.longest[:top]:
        table.add_row(
            str(transaction.partition),
            f"{transaction.first_offset}–{transaction.end_offset - 1}",
            str(transaction.producer_id),
            str(transaction.producer_epoch),
            "committed" if transaction.is_commit else "aborted",
            number(transaction.records),
            duration(transaction.duration_ms),
            moment(transaction.ended_at_ms),
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
    for partition in partitions:
        if len(partition.leader_epochs) > 1:
            spans = [f"{span.epoch} from {number(span.start_offset)}" for span in partition.leader_epochs]
            shown = spans if len(spans) <= limit else [spans[0], f"… {len(spans) - limit} more …", *spans[-limit + 1 :]]
            lines.append(f"partition {partition.partition}: {', '.join(shown)}")
    return lines
