"""Print the transactions that wait for their end, and what settles them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import print_table, printable
from makewhole.model.incidents.settlements import SETTLES_PREPARED, abort_text
from makewhole.model.text import counted, duration, moment
from makewhole.window.unsettled import OpenInTopic, PreparedInTable, SinkPlace, Unsettled

_ENDS_ITSELF = "wait: its producer ends it, or the coordinator when it times out"


def transactions_document(found: Unsettled, now: datetime) -> dict[str, Any]:
    """Return what `--json` prints of them."""
    return {
        "prepared": [_prepared_document(item, now) for item in found.prepared],
        "open": [_open_document(item, now) for item in found.open],
        "sinks": [
            {"from": sink.hop.source, "to": sink.hop.target, "reader": sink.hop.reader, "topic": sink.topic}
            | {"reads_next": {str(partition): offset for partition, offset in sink.offsets.items()}}
            for sink in found.sinks
        ],
    }


def _prepared_document(item: PreparedInTable, now: datetime) -> dict[str, Any]:
    transaction = item.transaction
    return {
        "point": item.point.name,
        **transaction.as_evidence(),
        "age_seconds": None if transaction.prepared is None else _age_ms(transaction.prepared, now) // 1000,
        "settled_by": SETTLES_PREPARED,
    }


def _open_document(item: OpenInTopic, now: datetime) -> dict[str, Any]:
    transaction = item.transaction
    since = _since_ms(item)
    return {
        "point": item.point.name,
        "topic": item.point.topic,
        "partition": transaction.partition,
        "first_offset": transaction.first_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "transactional_id": transaction.transactional_id,
        "since": moment(since),
        "age_seconds": (_now_ms(now) - since) // 1000,
        "timeout_seconds": None if transaction.timeout_ms is None else transaction.timeout_ms // 1000,
        "is_hanging": transaction.is_hanging,
        "settled_by": _settles_open(item),
    }


def show_transactions(out: Console, pipeline: str, found: Unsettled, now: datetime) -> None:
    """Print them, or that there is none."""
    if not found.is_any and not found.problems:
        out.print(f"no transaction holds keys of {pipeline} in doubt")
    if found.prepared:
        _show_prepared(out, found, now)
    if found.open:
        _show_open(out, found, now)
    if found.is_any:
        out.print("Nothing was settled: makewhole only reports transactions.")


def _show_prepared(out: Console, found: Unsettled, now: datetime) -> None:
    """Print the prepared transactions, the offsets that their range is held against, and what settles them."""
    number = len({(item.transaction.gid, item.transaction.prepared) for item in found.prepared})
    out.print(f"{counted(number, 'prepared transaction')}, neither committed nor rolled back:")
    table = _table("point", "gid", "owner", "prepared (UTC)", "age", "wrote to")
    for item in found.prepared:
        transaction = item.transaction
        prepared, age = "not shown by a standby", "-"
        if transaction.prepared is not None:
            prepared = f"{transaction.prepared.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            age = duration(_age_ms(transaction.prepared, now))
        _add(table, item.point.name, transaction.gid, transaction.owner, prepared, age, ", ".join(transaction.tables))
    print_table(out, table)
    for sink in found.sinks:
        out.print(f"{sink.hop.reader} of {sink.hop.name} reads next {', '.join(_places(sink))}")
    out.print(f"To settle: {SETTLES_PREPARED}")
    out.print()


def _places(sink: SinkPlace) -> Iterator[str]:
    for partition, offset in sink.offsets.items():
        yield f"{sink.topic}/{partition}: {'not known' if offset is None else offset}"


def _show_open(out: Console, found: Unsettled, now: datetime) -> None:
    out.print(f"{counted(len(found.open), 'open transaction')}, what lies in and behind each is in flight:")
    table = _table("topic", "from offset", "transactional id", "producer", "since (UTC)", "age", "to settle")
    for item in found.open:
        transaction, since = item.transaction, _since_ms(item)
        _add(
            table,
            f"{item.point.topic}/{transaction.partition}",
            str(transaction.first_offset),
            transaction.transactional_id or "not known",
            f"{transaction.producer_id} epoch {transaction.producer_epoch}",
            moment(since),
            duration(_now_ms(now) - since),
            _settles_open(item),
        )
    print_table(out, table)
    out.print()


def _settles_open(item: OpenInTopic) -> str:
    transaction = item.transaction
    if transaction.is_hanging:
        return f"it hangs: {abort_text(item.point.topic, transaction.partition, transaction.first_offset)}"
    timeout = "" if transaction.timeout_ms is None else f" ({duration(transaction.timeout_ms)})"
    return f"{_ENDS_ITSELF}{timeout}"


def _since_ms(item: OpenInTopic) -> int:
    transaction = item.transaction
    return transaction.last_timestamp_ms if transaction.started_at_ms is None else transaction.started_at_ms


def _now_ms(now: datetime) -> int:
    return int(now.timestamp() * 1000)


def _age_ms(since: datetime, now: datetime) -> int:
    return int((now - since).total_seconds() * 1000)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(printable(cell)) for cell in cells))
