"""Write the page on which a person approves a plan: counts, refusals and a few changes; never a key or a value.

The page is in Airflow's database, in an XCom and in its REST answers, for everybody who may see the DAG. So its samples
name columns and sizes; people who may see the data use `makewhole plan dry-run`. See docs/adr/0021.
"""

import hashlib
import html
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from makewhole.compensation.preview.dry_report import DryRun, DryRunPart, Forecast, RecordToSend, Sample
from makewhole.model.plan import Plan
from makewhole.model.text import counted
from makewhole.tables.row_change import RowChange

SAMPLES = 2
"""Number of samples of each kind of action at each target, and of refused ones."""

_PARTS_MOST = 20
_REASONS_MOST = 10
_READERS_MOST = 50
_SAMPLES_MOST = 10
_NAMES_MOST = 12
_CHARACTERS_MOST = 300
_MARKUP = str.maketrans({character: f"\\{character}" for character in "\\`*_[]|#!~"})


@dataclass(frozen=True, kw_only=True)
class ApprovalPage:
    """The page of a plan. `body` is Markdown."""

    subject: str
    body: str

    @property
    def sha256(self) -> str:
        """SHA-256 of subject and body, as 64 hexadecimal digits."""
        return hashlib.sha256(f"{self.subject}\n{self.body}".encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class ApprovalQuestion:
    """A plan to approve: `label` names the window, `about` are sentences about it, `who` may answer. `reported` are
    sentences on findings that are no part of the plan, because their remedy is `report`.

    `dry_run` was made at `dry_run_at`; a text: the reason why there is none.
    """

    plan: Plan
    label: str
    about: Sequence[str]
    who: str
    dry_run: DryRun | str
    dry_run_at: datetime
    reported: Sequence[str] = ()


def approval_page(question: ApprovalQuestion) -> ApprovalPage:
    """Return the page as Airflow and `makewhole plan approve` show it."""
    plan = question.plan
    verb = "Undo" if plan.undoes else "Repair"
    return ApprovalPage(
        subject=f"{verb} {question.label}: {counted(plan.actions, 'action')}", body="\n\n".join(_paragraphs(question))
    )


def escaped(text: str) -> str:
    """Escape a text: no markup, no HTML, one line, not too long."""
    line = " ".join("".join(part if part.isprintable() else " " for part in text).split())
    short = line if len(line) <= _CHARACTERS_MOST else f"{line[:_CHARACTERS_MOST]}…"
    return html.escape(short.translate(_MARKUP), quote=False)


def _paragraphs(question: ApprovalQuestion) -> Iterator[str]:
    plan = question.plan
    yield from (escaped(text) for text in question.about if text)
    if plan.undoes:
        yield (
            f"It takes back what plan `{plan.undoes}` did, the last one first. A row that changed since is left alone, "
            "and said."
        )
    if isinstance(question.dry_run, str):
        yield _markdown_table(("remedy", "actions"), ((remedy, f"{count:,}") for remedy, count in plan.counts.items()))
        yield f"**What it would do now is not known**: {escaped(question.dry_run)}"
    else:
        yield from _forecast_paragraphs(question.dry_run, question.dry_run_at)
    if question.reported:
        lines = [f"- {escaped(sentence)}" for sentence in question.reported]
        yield "\n".join(("Not in this plan:", "", *_at_most(lines, _PARTS_MOST)))
    yield f"See keys and values, before and after, and how it stands now: `makewhole plan dry-run {plan.id}`"
    yield f"Plan `{plan.id}`, SHA-256 `{plan.sha256}`. The answer is bound to this content."
    yield f"Who may answer: {escaped(question.who)}."
    yield (
        "**Approve** does these actions, each exactly once; the guards are asked again then. **Reject** leaves "
        f"everything as it is{'' if plan.undoes else ', and the window open'}."
    )


def _forecast_paragraphs(dry_run: DryRun, at: datetime) -> Iterator[str]:
    yield f"If it ran at {at:%Y-%m-%d %H:%M} UTC:"
    headings = ("remedy", "target", "actions", *(forecast.value for forecast in Forecast), "payloads from")
    yield _markdown_table(headings, (_part_cells(part) for part in dry_run.parts[:_PARTS_MOST]))
    refused = [(part, refusal, count) for part in dry_run.parts for refusal, count in part.reasons.items()]
    if refused:
        lines = [
            f"- {count:,} {part.remedy} {escaped(part.target)}: {escaped(str(refusal))}"
            for part, refusal, count in refused
        ]
        yield "\n".join(("Refused:", "", *_at_most(lines, _REASONS_MOST)))
    effects = [f"- {escaped(sentence)}" for table in dry_run.tables for sentence in table.sentences()]
    if effects:
        yield "\n".join(("Beside the rows:", "", *_at_most(effects, _REASONS_MOST)))
    yield from (f"**Beware**: {escaped(sentence)}." for sentence in dry_run.risks)
    readers = [f"- {escaped(sentence)}" for topic in dry_run.topics for sentence in topic.sentences()]
    if readers:
        yield "\n".join(("Who gets the records:", "", *_at_most(readers, _READERS_MOST)))
    if dry_run.samples:
        lines = [f"- {_sample_text(sample)}" for sample in dry_run.samples]
        yield "\n".join(("For example:", "", *_at_most(lines, _SAMPLES_MOST)))


def _at_most(lines: Sequence[str], most: int) -> Iterator[str]:
    yield from islice(lines, most)
    if len(lines) > most:
        yield f"- and {len(lines) - most:,} more"


def _part_cells(part: DryRunPart) -> tuple[str, ...]:
    counts = (f"{part.actions:,}", *(f"{part.forecasts[forecast]:,}" for forecast in Forecast))
    sources = ", ".join(f"{name} {count:,}" for name, count in part.payload_from.items())
    return (part.remedy, escaped(f"{part.target} ({part.place})"), *counts, escaped(sources))


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _sample_text(sample: Sample) -> str:
    action = sample.action
    head = f"action {action.seq}, {action.remedy.value} {escaped(action.target)}"
    if sample.forecast is not Forecast.WOULD:
        return f"{head}: {sample.forecast.value}"
    shown = sample.shown
    return f"{head}: {_record_text(shown) if isinstance(shown, RecordToSend) else _change_text(shown)}"


def _record_text(record: RecordToSend) -> str:
    """Describe a record by sizes. The names of its fields stay out: in a map that is keyed by data they are data."""
    partition = "any partition" if record.partition is None else f"partition {record.partition}"
    value = "no value" if record.value is None else f"a value of {len(record.value):,} bytes"
    time = "now" if record.timestamp_ms is None else "as in the original"
    return f"a record to {partition}, {value}, {counted(len(record.headers), 'header')}, time {time}"


def _change_text(change: RowChange) -> str:
    """Describe a change by its rows and the names of the columns that change, which are the table's own."""
    rows = f"{counted(len(change.before), 'row')} now, {len(change.after)} after it"
    if change.aside:
        return f"{rows}, {len(change.aside)} moved aside"
    before, after = Counter(change.before), Counter(change.after)
    new = [json.loads(row) for row in (after - before).elements()]
    old = [json.loads(row) for row in (before - after).elements()]
    names = _changed_columns(old, new)
    listed = ", ".join(islice(names, _NAMES_MOST)) + (", …" if len(names) > _NAMES_MOST else "")
    return f"{rows}; columns: {escaped(listed)}" if listed else rows


def _changed_columns(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns of a row that is new or gone, or those that differ."""
    if not old or not new:
        return [name for row in (*old, *new) for name in row]
    return [name for name, value in new[0].items() if value != old[0].get(name)]
