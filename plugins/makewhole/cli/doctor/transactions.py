"""Print the transactions that wait for their end, and what settles them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import print_table, printable
from makewhole.model.text import counted, duration


def show_transactions(out: Console, diagnosis: Mapping[str, Any]) -> None:
    """Print those of a diagnosis, or that there is none."""
    is_any = bool(diagnosis["prepared"] or diagnosis["open"])
    if not is_any and not diagnosis["problems"]:
        out.print(f"no transaction holds keys of {diagnosis['pipeline']} in doubt")
    if diagnosis["prepared"]:
        _show_prepared(out, diagnosis)
    if diagnosis["open"]:
        _show_open(out, diagnosis)
    if is_any:
        out.print("Nothing was settled: makewhole only reports transactions.")


def _show_prepared(out: Console, diagnosis: Mapping[str, Any]) -> None:
    """Print the prepared transactions, the offsets that their range is held against, and what settles them."""
    number = len({(item["gid"], item["prepared"]) for item in diagnosis["prepared"]})
    out.print(f"{counted(number, 'prepared transaction')}, neither committed nor rolled back:")
    table = _table("point", "gid", "owner", "prepared (UTC)", "age", "wrote to")
    for item in diagnosis["prepared"]:
        prepared, age = "not shown by a standby", "-"
        if item["prepared"] is not None:
            prepared = f"{datetime.fromisoformat(item['prepared']).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            age = _age(item)
        _add(table, item["point"], item["gid"], item["owner"], prepared, age, ", ".join(item["tables"]))
    print_table(out, table)
    for sink in diagnosis["sinks"]:
        places = (
            f"{sink['topic']}/{partition}: {'not known' if offset is None else offset}"
            for partition, offset in sink["reads_next"].items()
        )
        out.print(printable(f"{sink['reader']} of {sink['hop']} reads next {', '.join(places)}"))
    out.print(f"To settle: {diagnosis['prepared'][0]['settled_by']}")
    out.print()


def _show_open(out: Console, diagnosis: Mapping[str, Any]) -> None:
    out.print(f"{counted(len(diagnosis['open']), 'open transaction')}, what lies in and behind each is in flight:")
    table = _table("topic", "from offset", "transactional id", "producer", "since (UTC)", "age", "to settle")
    for item in diagnosis["open"]:
        _add(
            table,
            f"{item['topic']}/{item['partition']}",
            str(item["first_offset"]),
            item["transactional_id"] or "not known",
            f"{item['producer_id']} epoch {item['producer_epoch']}",
            item["since"],
            _age(item),
            item["settled_by"],
        )
    print_table(out, table)
    out.print()


def _age(item: Mapping[str, Any]) -> str:
    return duration(item["age_seconds"] * 1000)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(printable(cell)) for cell in cells))
