"""Run `makewhole doctor PIPELINE`: what weakens the claimed delivery, and which transactions wait for their end."""

import json as json_format
from collections.abc import Mapping
from typing import Any

import typer
from rich.text import Text

from makewhole.cli.doctor.transactions import show_transactions
from makewhole.cli.environment import AsJson, Exit, console, printable, service_environment
from makewhole.cli.report import PipelineName
from makewhole.cli.runs.ask import InAirflow, ask_airflow
from makewhole.model.delivery.weaknesses import Severity
from makewhole.model.text import counted
from makewhole.orchestration.task_ids import DELIVERY
from makewhole.window.context import find_pipeline
from makewhole.window.delivery.diagnosis import diagnose

_console = console()
_errors = console(stderr=True)
_COLOURS = {Severity.BROKEN: "bold red", Severity.RISK: "yellow", Severity.UNKNOWN: "cyan"}
_TITLES = {
    Severity.BROKEN: "the claim does not hold",
    Severity.RISK: "it holds as long as nothing else fails",
    Severity.UNKNOWN: "nothing here says whether it holds",
}


def doctor(pipeline: PipelineName, in_airflow: InAirflow = False, json: AsJson = False) -> None:
    """Hold producers, topics, brokers, consumers, sinks and tables to the delivery that a pipeline claims: each setting
    that is too little for it, with what to write instead and the row of docs/faults.md that shows what happens
    otherwise. What holds keys in doubt now is listed, too: prepared transactions of its tables, open ones of its
    topics. Nothing is written, and nothing is settled.

    Exit code 0: nothing is too little, 1: something is, 3: something is not known, or in doubt, 4: not everything could
    be asked.
    """
    with service_environment():
        described = find_pipeline(pipeline)
        out = _errors if json else _console
        diagnosis = ask_airflow(described, DELIVERY, out) if in_airflow else diagnose(described)
    if json:
        typer.echo(json_format.dumps(diagnosis, ensure_ascii=False))
    else:
        _show(diagnosis)
        show_transactions(_console, diagnosis)
        for problem in diagnosis["problems"]:
            text = f"not asked: {problem['point']}: {printable(problem['problem'])}"
            _console.print(Text(text, style="yellow"))
        if not in_airflow and not all(problem["is_connected"] for problem in diagnosis["problems"]):
            _console.print(f"with the connections of Airflow's tasks: makewhole doctor --in-airflow {pipeline}")
    raise typer.Exit(_exit(diagnosis))


def _exit(diagnosis: Mapping[str, Any]) -> Exit:
    severities = {Severity(weakness["severity"]) for weakness in diagnosis["findings"]}
    if diagnosis["problems"]:
        return Exit.COULD_NOT_RUN
    if severities - {Severity.UNKNOWN}:
        return Exit.GAPS_REMAIN
    return Exit.NOT_KNOWN if severities or diagnosis["prepared"] or diagnosis["open"] else Exit.CERTIFIED


def _show(diagnosis: Mapping[str, Any]) -> None:
    _console.print(printable(f"{diagnosis['pipeline']} claims {'; '.join(map(_claimed, diagnosis['claims']))}"))
    for severity in Severity:
        weaknesses = [weakness for weakness in diagnosis["findings"] if weakness["severity"] == severity]
        if weaknesses:
            _console.print()
            _console.print(Text(f"{severity}: {_TITLES[severity]}", style=_COLOURS[severity]))
            for number, weakness in enumerate(weaknesses, start=1):
                _show_weakness(number, weakness)
    if diagnosis["findings"]:
        _console.print()
        settings = counted(len(diagnosis["findings"]), "setting")
        _console.print(f"{settings} to look at. Nothing was changed: makewhole only reports settings.")
    elif not diagnosis["problems"]:
        _console.print("nothing that it rests on is too little for that")


def _claimed(claim: Mapping[str, Any]) -> str:
    return f"{claim['hop']} {claim['delivery']}{' (not in the file: derived)' if claim['is_derived'] else ''}"


def _show_weakness(number: int, weakness: Mapping[str, Any]) -> None:
    setting = f"{weakness['setting']}: {weakness['value']}; should be {weakness['expected']}"
    page, _, row = weakness["fault"].partition("#")
    _console.print(printable(f"{number}. {weakness['thing']}: {setting}"))
    _console.print(printable(f"   because {weakness['because']}"))
    _console.print(printable(f"   to write: {weakness['remedy']}"))
    _console.print(printable(f"   otherwise: row {row.split('-', 1)[0]} of {page}, #{row}"))
