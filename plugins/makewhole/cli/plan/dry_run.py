"""Run `makewhole plan dry-run`: show what a frozen plan would change if it ran now. Nothing is written."""

import json as json_format
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import AsJson, console, print_table, printable, service_environment
from makewhole.cli.plan.control import PlanId
from makewhole.cli.plan.masked_samples import with_masked_samples
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.preview.dry_report import (
    DryRun,
    DryRunPart,
    Forecast,
    ReadingSink,
    RecordToSend,
    Sample,
    TopicEffects,
)
from makewhole.compensation.preview.dry_run import SAMPLES, dry_run
from makewhole.compute.key_layout import with_layout
from makewhole.journal import plans, windows
from makewhole.journal.database import connect
from makewhole.journal.deployment.address import journal_dsn
from makewhole.kafka.topic_readers import ReadingGroup
from makewhole.tables.row_change import RowChange, column_lines
from makewhole.window.context import connections_of, find_pipeline

_console = console()
_errors = console(stderr=True)
_QUIET_SECONDS = 2.0
_CHARACTERS_MOST = 400
_HEADINGS = ("remedy", "target", "actions", *(fate.value for fate in Forecast), "payloads from")


def run_dry(
    plan: PlanId,
    samples: Annotated[
        int, typer.Option(min=0, help="Show so many actions of each kind at each target, and as many refused ones.")
    ] = SAMPLES,
    json: AsJson = False,
) -> None:
    """Show what a frozen plan would change if it ran now, by the guards that it will be asked when it runs.

    Changes nothing: tables are read in transactions that cannot write, topics by their settings. Shows keys, and values
    but those of masked columns. What only writing shows (constraints, triggers) is not tried. Exit code 0 whatever it
    says.
    """
    with service_environment(), _Bar() as bar:
        with connect() as journal:
            frozen = plans.get_plan(journal, plan).plan
            window = windows.load(journal, frozen.pipeline, frozen.window, frozen.revision)
        pipeline = with_layout(find_pipeline(frozen.pipeline), window.key_layout, window.value_types)
        targets = targets_of(pipeline, connections_of(pipeline))
        report = dry_run(journal_dsn(), plan, targets, samples=samples, progress=bar.update)
    report = with_masked_samples(report, pipeline)
    if json:
        typer.echo(json_format.dumps(dry_run_document(report), ensure_ascii=False))
        return
    _print(report)


class _Bar:
    """A progress bar that appears after two seconds. A context manager."""

    def __init__(self) -> None:
        columns = (TextColumn("looking at actions"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=_errors, transient=True)
        self._task = self._progress.add_task("", total=None)
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def update(self, done: int, total: int) -> None:
        """Update the bar; both numbers are actions."""
        if time.monotonic() - self._began > _QUIET_SECONDS:
            self._progress.start()
        self._progress.update(self._task, completed=done, total=total)


def dry_run_document(report: DryRun) -> dict[str, Any]:
    """Return a dry run as `--json` prints it."""
    plan = report.plan
    return {
        "plan": plan.id,
        "pipeline": plan.pipeline,
        "window": plan.window,
        "sha256": plan.sha256,
        "state": plan.state.value,
        "undoes": plan.undoes,
        "stopped_by": report.stopped_by,
        "actions": {fate.name.lower(): report.count(fate) for fate in Forecast},
        "risks": list(report.risks),
        "parts": [_part_document(part) for part in report.parts],
        "tables": [asdict(table) for table in report.tables],
        "topics": [_topic_document(topic) for topic in report.topics],
        "samples": [_sample_document(sample) for sample in report.samples],
    }


def _topic_document(topic: TopicEffects) -> dict[str, Any]:
    groups = [{"group": group.group} | _standing_document(group) for group in topic.groups]
    sinks = [_sink_document(sink) for sink in topic.sinks]
    return {
        "target": topic.target,
        "place": topic.place,
        "groups": groups,
        **({"sinks": sinks} if sinks else {}),
        "silent": topic.silent,
    }


def _standing_document(reader: ReadingGroup) -> dict[str, Any]:
    """Return how far behind a reader is: null where it stands at an offset that the log does not have, whose partitions
    are then listed. `elsewhere` has the numbers of the others."""
    numbers = {"lag": reader.lag, "records": reader.records}
    if not reader.out_of_range:
        return {**numbers, "unread": reader.unread}
    return {
        **dict.fromkeys(numbers, None),
        "unread": reader.unread,
        "out_of_range": {at: offset.to_json_dict() for at, offset in reader.out_of_range.items()},
        **({"elsewhere": numbers} if reader.standing else {}),
    }


def _sink_document(sink: ReadingSink) -> dict[str, Any]:
    """Return what loads a store, with its own progress; null where that says nothing of some partition."""
    standing = {} if sink.standing is None else _standing_document(sink.standing)
    unknown = dict.fromkeys(("lag", "records"), None) if sink.unknown or sink.standing is None else {}
    named = {"hop": sink.hop, "reader": sink.reader, "group": sink.group}
    return {**named, **standing, **unknown, "unknown": list(sink.unknown), "silent": sink.silent}


def _part_document(part: DryRunPart) -> dict[str, Any]:
    return {
        "remedy": part.remedy,
        "target": part.target,
        "place": part.place,
        "actions": part.actions,
        **{fate.name.lower(): part.forecasts[fate] for fate in Forecast},
        "reasons": {str(refusal): count for refusal, count in part.reasons.items()},
        "payload_from": dict(part.payload_from),
    }


def _sample_document(sample: Sample) -> dict[str, Any]:
    action, shown = sample.action, sample.shown
    return {
        "seq": action.seq,
        "remedy": action.remedy.value,
        "target": action.target,
        "key": action.key,
        "fate": sample.forecast.name.lower(),
        "reason": sample.reason,
        "code": None if sample.refusal is None else sample.refusal.code.value or None,
        "payload_from": action.before.payload_from,
        "origin": action.before.origin,
        **(_record_document(shown) if isinstance(shown, RecordToSend) else _change_document(shown)),
    }


def _change_document(change: RowChange) -> dict[str, Any]:
    return {
        "before": list(change.before),
        "after": list(change.after),
        "aside": list(change.aside),
        "columns": [asdict(column) for column in change.columns],
    }


def _record_document(record: RecordToSend) -> dict[str, Any]:
    return {
        "record": {
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
            "partition": record.partition,
            "timestamp_ms": record.timestamp_ms,
            "fields": None if record.fields is None else list(record.fields),
        }
    }


def _text(data: bytes | str | None) -> str | None:
    """Return text as it is, and bytes that are no text in Python's spelling."""
    if data is None or isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return repr(data)


def _print(report: DryRun) -> None:
    plan = report.plan
    undoes = f", undoes plan {plan.undoes}" if plan.undoes else ""
    _print_line(f"plan {plan.id}: window {plan.window} of {plan.pipeline}, {plan.state.value}{undoes}")
    if report.stopped_by:
        _print_line(f"It would not start now: {report.stopped_by}")
    _print_line("If it did all the same:" if report.stopped_by else "If it ran now:")
    print_table(_console, _parts_table(report.parts))
    for sentence in _sentences(report):
        _print_line(sentence)
    for sample in report.samples:
        _print_line("")
        for line in _sample_lines(sample):
            _print_line(line)
    _print_line("\nNothing was changed. The guards are asked again when the plan runs")


def _sentences(report: DryRun) -> Iterator[str]:
    """Yield what stands below the table: refusals, risks, and what happens at tables and topics beside the plan."""
    for part in report.parts:
        for refusal, count in part.reasons.items():
            yield f"refused, {part.remedy} {part.target}: {count} × {refusal}"
    yield from report.risks
    yield from (sentence for table in report.tables for sentence in table.sentences())
    yield from (sentence for topic in report.topics for sentence in topic.sentences())


def _print_line(line: str) -> None:
    _console.print(Text("\n".join(printable(part) for part in line.split("\n"))))


def _parts_table(parts: tuple[DryRunPart, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in _HEADINGS:
        is_text = heading in ("remedy", "target", "payloads from")
        table.add_column(heading, overflow="fold", justify="left" if is_text else "right")
    for part in parts:
        counts = (f"{part.actions:,}", *(f"{part.forecasts[fate]:,}" for fate in Forecast))
        sources = ", ".join(f"{name} {count:,}" for name, count in part.payload_from.items())
        table.add_row(*(Text(printable(cell)) for cell in (part.remedy, part.target, *counts, sources)))
    return table


def _sample_lines(sample: Sample) -> Iterator[str]:
    action = sample.action
    why = f": {sample.reason}" if sample.reason else ""
    yield f"{action.seq} {action.remedy.value} {action.target} {action.key}: {sample.forecast.value}{why}"
    if isinstance(sample.shown, RecordToSend):
        yield from _record_lines(sample.shown, action.before.payload_from)
        return
    kept = set(sample.shown.before) & set(sample.shown.after)
    aside = sample.shown.aside
    yield from (f"    {_short(row)}" for row in sample.shown.before if row in kept)
    yield from (f"  - {_short(row)}" for row in sample.shown.before if row not in kept and row not in aside)
    yield from (f"  > {_short(row)}  (moved aside)" for row in aside)
    yield from (f"  + {_short(row)}" for row in sample.shown.after if row not in kept)
    lines = column_lines(sample.shown.columns, is_new=not sample.shown.before)
    yield from (f"    {_short(line)}" for line in lines)


def _record_lines(record: RecordToSend, payload_from: str | None) -> Iterator[str]:
    partition = "by the partitioner" if record.partition is None else record.partition
    moment = "now" if record.timestamp_ms is None else f"{record.timestamp_ms} ms"
    yield f"  + key {_text(record.key)}, partition {partition}, timestamp {moment}, from {payload_from}"
    yield f"    headers {_short(', '.join(f'{name}={_text(value)}' for name, value in record.headers))}"
    if record.fields is not None:
        yield f"    fields {_short(', '.join(record.fields))}"
    yield f"    value {_short(_text(record.value) or 'null')}"


def _short(text: str) -> str:
    if len(text) <= _CHARACTERS_MOST:
        return text
    return f"{text[:_CHARACTERS_MOST]}… ({len(text):,} characters; --json shows all)"
