"""Run `makewhole run`: check one window of a pipeline, now, through Airflow."""

import json as json_format
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import access, airflow
from makewhole.cli.documents import chosen_windows, unanswered_document, window_document
from makewhole.cli.environment import Exit, console, exit_of, printable, service_environment
from makewhole.cli.report import PipelineName, show_windows
from makewhole.cli.runs.failed_task import FailedTask, failed_task
from makewhole.cli.runs.follow import follow
from makewhole.cli.runs.judged_keys import exit_of_keys, judged_keys, show_judged, show_unjudged
from makewhole.cli.runs.paused import require_released
from makewhole.cli.runs.pipeline_dags import wait_for_pipeline
from makewhole.compensation.planning.unanswered import Unanswered, read_unanswered
from makewhole.journal import step_failures, windows
from makewhole.journal.database import connect
from makewhole.journal.step_failures import StepFailure, StepPlace
from makewhole.journey.copies import windows_holding
from makewhole.journey.trace import business_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem, RefusedError, TransientError
from makewhole.model.text import counted
from makewhole.model.window import Window, WindowState
from makewhole.orchestration.access import oncall_dag_of
from makewhole.orchestration.task_ids import OPEN_WINDOW
from makewhole.sql import PgConnection
from makewhole.window.context import as_last_read, connections_of, find_pipeline

_LISTED_MOST = 20


def parse_time(text: str) -> datetime:
    """Parse a time as people and programs write it; UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time; write it like 2026-01-31T02:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class _RunRequest:
    """The window that a run is to open. `dag` has the on-call form of the pipeline; `end` None: when its task opens the
    window, by the clock of that machine."""

    pipeline: str
    dag: str
    start: datetime | None
    end: datetime | None
    plan_only: bool
    read_again: bool
    reason: str | None

    def form(self) -> dict[str, Any]:
        """Return the request as the form of the on-call DAG takes it."""
        return {
            "pipeline": self.pipeline,
            "from": None if self.start is None else self.start.isoformat(),
            "to": None if self.end is None else self.end.isoformat(),
            "plan_only": self.plan_only,
            "read_again": self.read_again,
            "reason": self.reason,
        }


def run(
    pipeline: PipelineName,
    start: Annotated[
        datetime | None,
        typer.Option("--from", parser=parse_time, metavar="TIME", help="Start; UTC unless it says otherwise."),
    ] = None,
    end: Annotated[
        datetime | None, typer.Option("--to", parser=parse_time, metavar="TIME", help="End; now when not given.")
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A file of business keys, one a line, or what `makewhole findings --json` prints (.jsonl): judge "
            "them as they are now, in the windows that hold them. Nothing is certified or repaired.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="With --keys: judge the windows that hold them again, whole, and repair.")
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="NUMBER", help="Judge this window again, as a new revision.", show_default=False
        ),
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Compare and plan, and change nothing.")] = False,
    read_again: Annotated[
        bool,
        typer.Option(
            "--read-again",
            help="Of a window that is judged again, read every point, also one that is shown to be unchanged.",
        ),
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why, for the journal.", show_default=False)] = None,
    follow: Annotated[bool, typer.Option(help="Wait for the end, and show each step.")] = True,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a window; progress goes to stderr.")] = False,
) -> None:
    """Check one window of a pipeline and repair it. Exit code 0 certified, 1 gaps remain, 2 nothing was judged before
    a person corrects what is named, 3 not known, 4 error; of --keys 6: none of them is judged."""
    _require_of_keys(keys, whole=whole, asks_windows=plan_only or read_again or reason is not None or not follow)
    if sum((keys is not None, window is not None, bool(start or end))) > 1:
        raise typer.BadParameter("give one of --keys, --window, and --from with --to: each says which windows to judge")
    out = console(stderr=json)
    if keys is not None and not whole:
        with service_environment():
            code = _judge_alone(pipeline, keys, out, json=json)
        raise typer.Exit(code)
    states = []
    with service_environment():
        request = _RunRequest(
            pipeline=pipeline,
            dag=oncall_dag_of(find_pipeline(pipeline)),
            start=start,
            end=end,
            plan_only=plan_only,
            read_again=read_again,
            reason=reason,
        )
        for window_request in _requests(request, window, keys, out):
            run_id = _start(window_request, out, is_followed=follow)
            if not follow:
                if json:
                    typer.echo(json_format.dumps({"pipeline": pipeline, "run": run_id}))
                continue
            document = _document(window_request, run_id)
            states.append(WindowState(document["state"]))
            if json:
                typer.echo(json_format.dumps(document, ensure_ascii=False))
            else:
                show_result(out, document)
    raise typer.Exit(max((exit_of(state) for state in states), default=Exit.CERTIFIED))


def _require_of_keys(keys: Path | None, *, whole: bool, asks_windows: bool) -> None:
    """Check that options of windows stand beside windows."""
    if whole and keys is None:
        raise typer.BadParameter("--whole is of the windows that hold the keys of --keys")
    if keys is not None and not whole and asks_windows:
        raise typer.BadParameter(
            "--plan-only, --read-again, --reason and --no-follow are of windows: give --whole, too"
        )


def _judge_alone(pipeline: str, keys: Path, out: Console, *, json: bool) -> Exit:
    """Have the keys of a file judged alone, and show their verdicts."""
    places = _places_of_keys(pipeline, keys, out)
    documents = judged_keys(pipeline, places)
    if not json:
        show_judged(out, documents)
    for document in documents if json else ():
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    show_unjudged(out, pipeline, places, documents)
    return exit_of_keys(documents, places)


def _requests(request: _RunRequest, window: int | None, keys: Path | None, out: Console) -> list[_RunRequest]:
    """Return what to run: the interval that was asked for, that of a window, or those of the windows with keys."""
    if keys is not None:
        return _requests_of_keys(request, keys, out)
    if window is None:
        return [request]
    with connect() as journal:
        (chosen,) = chosen_windows(journal, request.pipeline, window, revision=None)
    return [replace(request, start=chosen.start, end=chosen.end)]


def read_keys(file: Path) -> list[str]:
    """Return the keys of a file: its lines that are not empty, as they are, as a key may hold what elsewhere ends a
    line, too. Of a `.jsonl` file the member `key` of each line, or the JSON text that it is: with line breaks in it.

    Raises:
        ConfigurationError: it is not UTF-8, or a line of JSON has no key.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unfit(f"{file} is not UTF-8: byte {error.start:,} is no part of a character") from None
    lines = [line for line in (line.removesuffix("\r") for line in text.split("\n")) if line]
    if file.suffix != ".jsonl":
        return lines
    return [_key_of(line, f"line {number:,} of {file}") for number, line in enumerate(lines, start=1)]


def _key_of(line: str, where: str) -> str:
    """Return the key of a line of JSON: an object that has one, a text, or the parts of one."""
    try:
        value = json_format.loads(line)
    except (ValueError, RecursionError):
        raise _unfit(f"{where} is no JSON") from None
    key = value.get("key") if isinstance(value, dict) else value
    if isinstance(key, list):
        return json_format.dumps(key, ensure_ascii=False)
    if not isinstance(key, str):
        raise _unfit(f"{where} names no key")
    return key


def _unfit(found: str) -> ConfigurationError:
    remedy = (
        "Write the keys one a line, in UTF-8; or name a file that ends in .jsonl, with what `makewhole findings "
        "--json` prints"
    )
    return ConfigurationError([Problem(file="command line", path="--keys", found=found, remedy=remedy)])


def _places_of_keys(name: str, keys: Path, out: Console) -> dict[str, list[Window]]:
    """Return the windows that hold each key of a file, oldest first.

    Raises:
        TransientError: a key is in none yet.
    """
    lines = read_keys(keys)
    with connect() as journal:
        pipeline = as_last_read(journal, find_pipeline(name))
        wanted = list(dict.fromkeys(business_key(pipeline, line) for line in lines))
        places = windows_holding(journal, pipeline, Storage.from_environment(), wanted)
    unknown = [key for key, holders in places.items() if not holders]
    for key in unknown[:_LISTED_MOST]:
        out.print(f"no window holds {printable(key)}")
    if len(unknown) > _LISTED_MOST:
        out.print(f"… and {len(unknown) - _LISTED_MOST:,} more")
    if unknown or not wanted:
        raise TransientError(
            f"{len(unknown)} of {len(wanted)} keys are in no window yet; run the window that should hold them, "
            "then ask again"
        )
    return places


def _requests_of_keys(request: _RunRequest, keys: Path, out: Console) -> list[_RunRequest]:
    """Return one request per window that holds any of the keys, oldest first."""
    places = _places_of_keys(request.pipeline, keys, out)
    holding = {window.number: window for holders in places.values() for window in holders}
    numbers = ", ".join(str(number) for number in sorted(holding))
    out.print(
        f"{counted(len(places), 'key')} in {counted(len(holding), 'window')} ({numbers}); each is judged again, whole"
    )
    return [replace(request, start=window.start, end=window.end) for _, window in sorted(holding.items())]


def _start(request: _RunRequest, out: Console, *, is_followed: bool) -> str:
    """Trigger a run, and follow it to its end where that is wanted; return its id."""
    where = access()
    with airflow(where) as api:
        wait_for_pipeline(api, request.pipeline, request.dag)
        require_released(api, where, request.dag)
        run_id = api.trigger(request.dag, request.form())
        out.print(f"run {run_id}: {where.run_url(request.dag, run_id)}")
        if is_followed:
            follow(api, request.dag, run_id, out, where)
    return run_id


def _document(request: _RunRequest, run_id: str) -> dict[str, Any]:
    with connect() as journal:
        place = windows.by_request(journal, request.pipeline, run_id)
        if place is None:
            raise _no_window(journal, request, run_id)
        window = windows.load(journal, request.pipeline, *place)
        unanswered = [] if window.state is WindowState.ERROR else _unanswered(journal, window)
        return {**window_document(journal, window), "unanswered": [unanswered_document(group) for group in unanswered]}


def _no_window(journal: PgConnection, request: _RunRequest, run_id: str) -> MakewholeError:
    """Return why a run opened no window, as its first task has left it in the journal, or, where Airflow does not have
    this journal, at Airflow; and where its log is."""
    where = access()
    url = where.log_url(request.dag, run_id, OPEN_WINDOW)
    place = StepPlace(pipeline=request.pipeline, step=OPEN_WINDOW, dag=request.dag, run=run_id)
    left = step_failures.at(journal, place)
    failure: StepFailure | FailedTask | None = left if left is not None and left.run == run_id else None
    if failure is None:
        with airflow(where) as api:
            failure = failed_task(api, request.dag, run_id, OPEN_WINDOW)
    if failure is None:
        return TransientError(f"run {run_id} opened no window; the log of its task {OPEN_WINDOW} says why: {url}")
    text = f"run {run_id} opened no window:\n{failure.reason}\nThe log of {OPEN_WINDOW}: {url}"
    return RefusedError(text) if failure.is_permanent else TransientError(text)


def _unanswered(journal: PgConnection, window: Window) -> list[Unanswered]:
    """Return what is only reported; the tables are asked for their columns where this machine has their connections."""
    pipeline = find_pipeline(window.pipeline)
    try:
        connections = connections_of(pipeline)
    except ConfigurationError:
        connections = None
    return read_unanswered(journal, pipeline, window, connections)


def show_result(out: Console, document: dict[str, Any]) -> None:
    """Print how a run ended: its window, its plan, what is only reported, and where to look."""
    show_windows(out, [document])
    plan = document["plan"]
    if plan:
        actions = ", ".join(f"{count} {remedy}" for remedy, count in plan["actions"].items())
        out.print(f"plan {plan['id']}: {actions}; {plan['state']}")
    for failure in document["failures"]:
        out.print(f"gate: {printable(failure)}")
    for group in document["unanswered"]:
        first, *rest = group["messages"]
        out.print(Text(printable(first)))
        for sentence in rest:
            out.print(Text(f"  {printable(sentence)}"))
    if document["certificate"]:
        out.print(f"certificate: {document['certificate']['uri']}")
    elif WindowState(document["state"]) is WindowState.GAPS:
        out.print(f"see them: makewhole findings {document['pipeline']} --window {document['window']}")
