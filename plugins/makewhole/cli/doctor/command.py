"""Run `makewhole doctor PIPELINE`: what weakens the claimed delivery, and which transactions wait for their end."""

import json as json_format
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import typer
from rich.text import Text

from makewhole.cli.doctor.transactions import show_transactions, transactions_document
from makewhole.cli.environment import AsJson, Exit, console, printable, service_environment
from makewhole.cli.report import PipelineName
from makewhole.config.connections import from_environment
from makewhole.model.connection import Connection
from makewhole.model.delivery.weaknesses import Severity, Weakness
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted
from makewhole.window.context import find_pipeline
from makewhole.window.delivery.claims import HopClaim
from makewhole.window.delivery.examine import Examination, examine
from makewhole.window.unsettled import look_for_unsettled

_console = console()
_COLOURS = {Severity.BROKEN: "bold red", Severity.RISK: "yellow", Severity.UNKNOWN: "cyan"}
_TITLES = {
    Severity.BROKEN: "the claim does not hold",
    Severity.RISK: "it holds as long as nothing else fails",
    Severity.UNKNOWN: "nothing here says whether it holds",
}


def doctor(pipeline: PipelineName, json: AsJson = False) -> None:
    """Hold producers, topics, brokers, consumers, sinks and tables to the delivery that a pipeline claims: each setting
    that is too little for it, with what to write instead and the row of docs/faults.md that shows what happens
    otherwise. What holds keys in doubt now is listed, too: prepared transactions of its tables, open ones of its
    topics. Nothing is written, and nothing is settled.

    Exit code 0: nothing is too little, 1: something is, 3: something is not known, or in doubt, 4: not everything could
    be asked.
    """
    with service_environment():
        described = find_pipeline(pipeline)
        connections, absent = _reached(described)
        examined = examine(described, connections)
        unsettled = look_for_unsettled(_without(described, absent), connections)
    now = datetime.now(UTC)
    problems = list(dict.fromkeys([*absent.items(), *examined.problems, *unsettled.problems]))
    if json:
        document = {
            "pipeline": pipeline,
            **_document(examined),
            **transactions_document(unsettled, now),
            "problems": [{"point": name, "problem": problem} for name, problem in problems],
        }
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    else:
        _show(pipeline, examined)
        show_transactions(_console, pipeline, unsettled, now)
        for name, problem in problems:
            _console.print(Text(f"not asked: {name}: {printable(problem)}", style="yellow"))
    raise typer.Exit(_exit(examined.weaknesses, has_problems=bool(problems), is_in_doubt=unsettled.is_any))


def _reached(pipeline: Pipeline) -> tuple[dict[str, Connection], dict[str, str]]:
    """Return the connections that this machine has, and, by point, why it lacks those of others."""
    connections: dict[str, Connection] = {}
    absent: dict[str, str] = {}
    seconds = pipeline.time_limits.longest.total_seconds()
    for point in pipeline.points.values():
        try:
            connections[point.connection] = from_environment(point.connection).limited(seconds)
        except ConfigurationError as error:
            absent[point.name] = str(error)
    return connections, absent


def _without(pipeline: Pipeline, absent: Iterable[str]) -> Pipeline:
    """Return a pipeline without points that cannot be reached from here, and without the hops at them."""
    gone = frozenset(absent)
    if not gone:
        return pipeline
    points = {name: point for name, point in pipeline.points.items() if name not in gone}
    hops = tuple(hop for hop in pipeline.hops if not gone & {hop.source, hop.target})
    return replace(pipeline, points=points, hops=hops)


def _exit(weaknesses: Iterable[Weakness], *, has_problems: bool, is_in_doubt: bool) -> Exit:
    severities = {weakness.severity for weakness in weaknesses}
    if has_problems:
        return Exit.COULD_NOT_RUN
    if severities - {Severity.UNKNOWN}:
        return Exit.GAPS_REMAIN
    return Exit.NOT_KNOWN if severities or is_in_doubt else Exit.CERTIFIED


def _document(examined: Examination) -> dict[str, Any]:
    """Return what `--json` prints of the claims and of what weakens them."""
    return {
        "claims": [
            {
                "from": claim.hop.source,
                "to": claim.hop.target,
                "delivery": claim.delivery,
                "is_derived": claim.is_derived,
            }
            for claim in examined.claims
        ],
        "findings": [
            {
                "severity": weakness.severity,
                "thing": weakness.thing,
                "setting": weakness.setting,
                "value": weakness.value,
                "expected": weakness.expected,
                "because": weakness.because,
                "remedy": weakness.remedy,
                "fault": weakness.fault.place,
            }
            for weakness in examined.weaknesses
        ],
        "producers": dict(examined.producers),
    }


def _show(pipeline: str, examined: Examination) -> None:
    _console.print(f"{pipeline} claims {'; '.join(map(_claimed, examined.claims))}")
    for severity in Severity:
        found = [weakness for weakness in examined.weaknesses if weakness.severity is severity]
        if found:
            _console.print()
            _console.print(Text(f"{severity}: {_TITLES[severity]}", style=_COLOURS[severity]))
            for number, weakness in enumerate(found, start=1):
                _show_weakness(number, weakness)
    if examined.weaknesses:
        _console.print()
        settings = counted(len(examined.weaknesses), "setting")
        _console.print(f"{settings} to look at. Nothing was changed: makewhole only reports settings.")
    elif not examined.problems:
        _console.print("nothing that it rests on is too little for that")


def _claimed(claim: HopClaim) -> str:
    return f"{claim.hop.name} {claim.delivery}{' (not in the file: derived)' if claim.is_derived else ''}"


def _show_weakness(number: int, weakness: Weakness) -> None:
    _console.print(
        printable(f"{number}. {weakness.thing}: {weakness.setting}: {weakness.value}; should be {weakness.expected}")
    )
    _console.print(printable(f"   because {weakness.because}"))
    _console.print(printable(f"   to write: {weakness.remedy}"))
    _console.print(printable(f"   otherwise: row {weakness.fault.row} of docs/faults.md, #{weakness.fault.value}"))
