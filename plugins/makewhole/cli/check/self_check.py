"""Run `makewhole self-check`: show how much of what self-checks planted was found, the last round and those before."""

import json as json_format
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.text import Text

from makewhole.cli.environment import AsJsonLines, Exit, console, printable, service_environment
from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.config.schedules import last_end
from makewhole.journal.database import connect
from makewhole.journal.results import self_check_rounds
from makewhole.journal.results.self_check_rounds import PlantedRound
from makewhole.model.pipeline import Pipeline
from makewhole.model.self_check.score import ratio_text
from makewhole.orchestration.task_ids import reconcile_dag_id
from makewhole.self_check.systems import settings_of

_console = console()
_DAYS_SHOWN = 15
_TIME_TO_END = timedelta(hours=6)
"""How long after its schedule a round may come to its end before it is late."""


def self_check(
    pipeline: Annotated[
        str | None, typer.Argument(help="The self-check; all of them when not given.", show_default=False)
    ] = None,
    json: AsJsonLines = False,
) -> None:
    """Show how much of what makewhole planted to check itself was found: the last round, and in one line those before.

    Exit codes: 0 all was found and repaired, 1 something was not, or was found that was not planted, 3 nothing was
    compared, or not when it was due.
    """
    with service_environment():
        pipelines, _ = read_pipelines(pipeline_folders())
        chosen = [known for known in pipelines.values() if known.self_check is not None]
        if pipeline is not None:
            from makewhole.config.pipeline_file import find_pipeline

            chosen = [find_pipeline(pipeline)]
            settings_of(chosen[0])
        if not chosen:
            _console.print("no pipeline file has `self_check`; docs/self-check.md says how to write one")
            raise typer.Exit(Exit.NOT_KNOWN)
        exits = [_show(known, json=json) for known in chosen]
    raise typer.Exit(max(exits, key=(Exit.CERTIFIED, Exit.NOT_KNOWN, Exit.GAPS_REMAIN).index))


def _show(pipeline: Pipeline, *, json: bool) -> Exit:
    """Print what is known of a self-check; return the exit code that is right of it alone."""
    with connect() as journal:
        rounds = self_check_rounds.newest(journal, pipeline.name, _DAYS_SHOWN)
    document = document_of(pipeline, rounds, datetime.now(UTC))
    if json:
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    else:
        for line in lines_of(document):
            _console.print(Text(printable(line)))
    return Exit[document["exit"]]


def document_of(pipeline: Pipeline, rounds: Sequence[PlantedRound], now: datetime) -> dict[str, Any]:
    """Describe a self-check by its rounds, the newest first: as data."""
    compared = [_round_document(planted) for planted in rounds if planted.result is not None]
    waiting = next((planted.round for planted in rounds if planted.result is None), None)
    due = _due(pipeline, now)
    last = max((planted.compared_at for planted in rounds if planted.compared_at is not None), default=None)
    is_late = due is not None and last is not None and last < due
    exit_code = Exit.NOT_KNOWN if not compared or is_late else Exit.CERTIFIED
    if compared and not compared[0]["is_green"]:
        exit_code = Exit.GAPS_REMAIN
    return {
        "pipeline": pipeline.name,
        "exit": exit_code.name,
        "last": compared[0] if compared else None,
        "before": compared[1:],
        "waiting": waiting,
        "late_since": due.isoformat() if is_late and due is not None else None,
    }


def _due(pipeline: Pipeline, now: datetime) -> datetime | None:
    """Return the time of the schedule whose round should have been compared by now."""
    if pipeline.schedule is None or (pipeline.until is not None and now > pipeline.until):
        return None
    return last_end(pipeline.schedule, now - _TIME_TO_END)


def _round_document(planted: PlantedRound) -> dict[str, Any]:
    result = planted.result
    assert result is not None
    assert planted.compared_at is not None
    score = result.score
    missed = Counter((fault.hop, fault.verdict) for fault in score.missed)
    kinds = Counter((fault.hop, fault.verdict) for fault in planted.planted)
    return {
        "round": planted.round,
        "compared_at": planted.compared_at.isoformat(),
        "window": result.window,
        "is_green": score.is_green,
        **score.numbers,
        "kinds": [
            {"hop": hop, "verdict": verdict, "planted": count, "found": count - missed[hop, verdict]}
            for (hop, verdict), count in sorted(kinds.items())
        ],
        "sentence": score.sentence(),
    }


def lines_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what people read of a self-check."""
    name, last = document["pipeline"], document["last"]
    if last is None:
        yield f"{name}: nothing was compared yet; its DAG is {reconcile_dag_id(name)}"
    else:
        colour = "green" if last["is_green"] else "RED"
        yield f"{name}: {colour}, round {last['round']} of {_day(last)} (window {last['window']}): {last['sentence']}"
        for kind in last["kinds"]:
            yield f"  {kind['verdict']} on {kind['hop']}: {kind['found']} of {kind['planted']} found"
    if document["before"]:
        yield "  before: " + ", ".join(map(_in_short, document["before"]))
    if document["waiting"] is not None:
        yield f"  round {document['waiting']} is under way, or was left in the middle; the next run goes on with it"
    if document["late_since"] is not None:
        yield f"  late: no round was compared since {document['late_since']}; is {reconcile_dag_id(name)} paused?"


def _in_short(compared: Mapping[str, Any]) -> str:
    ratios = f"{ratio_text(compared['recall'])}/{ratio_text(compared['precision'])}"
    return f"{_day(compared)} " + ("green" if compared["is_green"] else f"RED ({ratios})")


def _day(compared: Mapping[str, Any]) -> str:
    return str(compared["compared_at"])[:10]
