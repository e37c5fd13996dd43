"""Run `makewhole explain PIPELINE KEY`: show one key's journey, point by point, with its verdicts and actions."""

import json as json_format
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from makewhole.cli.documents import hop_ends
from makewhole.cli.environment import AsJson, Exit, console, print_table, printable, service_environment
from makewhole.cli.report import PipelineName
from makewhole.config.connections import from_environment
from makewhole.journal.acceptances import KeyWord
from makewhole.journal.database import connect
from makewhole.journal.key_history import Judgement, KeyAction
from makewhole.journey.copies import JourneyCopy
from makewhole.journey.events import COPIES, Event, Replays, events, is_replay, record_text, replays_of, row_text
from makewhole.journey.last_judged import last_judged, last_judged_text
from makewhole.journey.trace import Journey, Stop, business_key, trace
from makewhole.lake.storage import Storage
from makewhole.model.points import PointKind
from makewhole.window.context import as_last_read, find_pipeline

_console = console()


def explain(
    pipeline: PipelineName,
    key: Annotated[str, typer.Argument(help="The business key; of several parts, a JSON array of strings.")],
    json: AsJson = False,
) -> None:
    """Show one key's journey: where it is now, every verdict on it, every action, in time order. Exit code 3: not
    known."""
    with service_environment(), connect() as journal:
        described = as_last_read(journal, find_pipeline(pipeline))
        journey = trace(journal, described, Storage.from_environment(), from_environment, business_key(described, key))
    if json:
        typer.echo(json_format.dumps(journey_document(journey), ensure_ascii=False, default=str))
    elif journey.is_known:
        _show(journey)
    if not journey.is_known:
        _print_searched(journey)
        raise typer.Exit(Exit.NOT_KNOWN)


def journey_document(journey: Journey) -> dict[str, Any]:
    """Return what `--json` prints: `points` in order, `windows` per window and hop, what was `last_judged` on each hop,
    `actions`, `acceptances`, on hops with `group` the `sums`, and all of it as `events`."""
    replays = replays_of(journey)
    return {
        "pipeline": journey.pipeline,
        "key": journey.key,
        "key_hash": journey.key_hash,
        "known": journey.is_known,
        "points": [_point(stop, replays) for stop in journey.stops],
        "windows": [_judgement(item) for item in journey.judgements],
        "last_judged": [_judgement(item) for item in last_judged(journey)],
        "actions": [_action(action) for action in journey.actions],
        "acceptances": [_word(word) for word in journey.words],
        **({"sums": [vars(key_sums) for key_sums in journey.sums]} if journey.sums else {}),
        "events": [vars(event) | {"time": _iso(event.time)} for event in events(journey)],
    }


def _point(stop: Stop, replays: Replays) -> dict[str, Any]:
    return {
        "point": stop.point,
        "kind": stop.kind.value,
        "system": stop.system,
        "looked": list(stop.searched),
        "problems": list(stop.problems),
        "copies": [_copy(copy, replays) for copy in stop.copies],
        **({"outside": [row.as_evidence() for row in stop.outside]} if stop.outside else {}),
    }


def _copy(copy: JourneyCopy, replays: Replays) -> dict[str, Any]:
    document: dict[str, Any] = {"place": copy.place, "time": _iso(copy.time), "values": dict(copy.values)}
    if copy.window is not None:
        document |= {"window": copy.window, "revision": copy.revision, **copy.identity}
        document["is_replay"] = is_replay(copy, replays)
    return document


def _judgement(item: Judgement) -> dict[str, Any]:
    source, target = item.hop.split("→")
    times = {"judged_at": _iso(item.judged_at), "verified_at": _iso(item.verified_at)}
    return vars(item) | {"hop": {"from": source, "to": target}} | times


def _action(action: KeyAction) -> dict[str, Any]:
    times = {name: _iso(getattr(action, name)) for name in ("frozen_at", "decided_at", "done_at")}
    return vars(action) | times


def _word(word: KeyWord) -> dict[str, Any]:
    times = {name: _iso(getattr(word, name)) for name in ("until", "asked_at", "decided_at", "ended_at")}
    return vars(word) | {"hop": hop_ends(word.hop)} | times


def _iso(moment: Any) -> str | None:
    return None if moment is None else str(moment.isoformat())


def _show(journey: Journey) -> None:
    """Print what was last judged, where the key is, and what happened to it: a copy stands in the first table alone."""
    _console.print(f"key {printable(journey.key)} of {journey.pipeline}, hash {journey.key_hash}")
    if judged := last_judged_text(journey):
        _console.print(f"last judged: {judged}")
    _console.print()
    print_table(_console, _copies_table(journey))
    for key_sums in journey.sums:
        _console.print(Text(printable(key_sums.text)))
    happened = [event for event in events(journey) if event.kind not in COPIES]
    if happened:
        _console.print()
        print_table(_console, _events_table(happened))
    for stop in journey.stops:
        for problem in stop.problems:
            _console.print(Text(f"not looked at: {stop.point}: {printable(problem)}", style="yellow"))


def _copies_table(journey: Journey) -> Table:
    """Return the table of where the key is: one line a copy, one for a point that has none."""
    table = _table("point", "where", "time", "compared values")
    for stop in journey.stops:
        for copy in stop.copies:
            place = _place(stop, copy, replays_of(journey))
            values = ", ".join(f"{name}={'null' if text is None else text}" for name, text in copy.values.items())
            _add(table, stop.point, place, _short(copy.time), values)
        if not stop.copies:
            where = f"not in {stop.system}" if stop.searched else "not known: could not look"
            _add(table, stop.point, where, "", "")
        for row in stop.outside:
            _add(table, stop.point, f"outside {stop.system}: {row.text}", "", "")
    return table


def _place(stop: Stop, copy: JourneyCopy, replays: Replays) -> str:
    if stop.kind is not PointKind.TOPIC:
        return row_text(stop, copy)
    return f"{record_text(copy, replays)} (window {copy.window})"


def _events_table(events_in_order: list[Event]) -> Table:
    table = _table("time", "what", "where", "window", "how")
    for event in events_in_order:
        window = "" if event.window is None else f"{event.window}" + (f".{event.revision}" if event.revision else "")
        _add(table, _short(event.time), event.kind, event.where, window, event.text)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(printable(cell)) for cell in cells))


def _short(moment: Any) -> str:
    return "" if moment is None else moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def _print_searched(journey: Journey) -> None:
    errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    errors.print(f"nothing is known of key {printable(journey.key)} in {journey.pipeline}. Looked for in:")
    for stop in journey.stops:
        searched = ", ".join(stop.searched) or "nowhere"
        errors.print(f"  {stop.point} ({stop.system}): {searched}")
        for problem in stop.problems:
            errors.print(f"    could not look: {printable(problem)}")
    errors.print("  the journal: findings and actions of every window")
    errors.print(
        "Records that came after the last window are in no snapshot yet; `makewhole run` opens the next window."
    )
