"""Run `makewhole demo`: plant mistakes in real flights on their way to a warehouse, find, repair, prove."""

import json as json_text
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import Access, airflow
from makewhole.cli.demo.backfill import Backfill, Watcher
from makewhole.cli.demo.planted_and_found import Discrepancy, Line, as_table, found_ones, lines, planted_ones
from makewhole.cli.environment import console
from makewhole.model.errors import MakewholeError, RefusedError, TransientError
from makewhole.model.window import WindowState
from makewhole.stack.settings import home_folder, project_root

_PIPELINE = "flights"
_DAG = f"makewhole_reconcile_{_PIPELINE}"
_FIRST = datetime(2013, 1, 1, 5, tzinfo=UTC)  # as the schedule in flights.yaml cuts the days
_DAYS_IN_DATA = 365
_MOST_DAYS_IN_DETAIL = 10
# A task that waits goes in and out of these every few seconds: each is reported once.
_REPORTED_STATES = frozenset({"running", "success", "failed", "upstream_failed", "up_for_retry", "awaiting_input"})
_GAPS_REMAIN, _COULD_NOT_RUN = 1, 4


@dataclass(frozen=True, kw_only=True)
class DemoOutcome:
    """The results of a demo. `missed`/`invented` are the findings that are not as planted."""

    lines: Sequence[Line]
    missed: Sequence[Discrepancy]
    invented: Sequence[Discrepancy]
    windows: Sequence[Mapping[str, Any]]
    expected_windows: int
    proof: Mapping[str, Any]
    seconds: float
    airflow_url: str

    @property
    def certified(self) -> int:
        return sum(1 for window in self.windows if window["state"] == WindowState.CERTIFIED)

    @property
    def problems(self) -> list[str]:
        """Reasons why the demo failed; empty when it succeeded."""
        problems = []
        if self.missed or self.invented:
            problems.append(f"found is not planted: {len(self.missed)} missed, {len(self.invented)} invented")
        if not self.certified == len(self.windows) == self.expected_windows:
            problems.append(
                f"of {self.expected_windows} windows {len(self.windows)} exist and {self.certified} are certified"
            )
        if not self.proof["holds"]:
            problems.append(f"the independent proof fails for {len(self.proof['wrong'])} flights")
        return problems

    def document(self) -> dict[str, Any]:
        """Return the outcome as `--json` prints it."""
        return {
            "ok": not self.problems,
            "problems": self.problems,
            "lines": [asdict(line) for line in self.lines],
            "missed": [asdict(discrepancy) for discrepancy in self.missed],
            "invented": [asdict(discrepancy) for discrepancy in self.invented],
            "windows": list(self.windows),
            "proof": dict(self.proof),
            "seconds": round(self.seconds, 1),
            "airflow": self.airflow_url,
        }


def demo(
    days: Annotated[int, typer.Option(min=1, max=_DAYS_IN_DATA, help="Days of 2013, one window each.")] = 3,
    year: Annotated[bool, typer.Option("--year", help="All 365 days, 336,776 departures.")] = False,
    seed: Annotated[int, typer.Option(help="Which flights the mistakes hit.")] = 7,
    keep: Annotated[bool, typer.Option(help="Leave the stack running at the end, to look around.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object; progress goes to stderr.")] = False,
) -> None:
    """Plant mistakes in the loading of real flights; find, repair, prove. Exit code 0 only if all of it came true."""
    out = console(stderr=json)
    try:
        outcome = _Demo(out, days=_DAYS_IN_DATA if year else days, seed=seed).run()
    except (MakewholeError, subprocess.TimeoutExpired) as error:
        out.print(Text.assemble(("could not run: ", "bold red"), str(error)))
        raise typer.Exit(_COULD_NOT_RUN) from error
    if json:
        typer.echo(json_text.dumps(outcome.document(), ensure_ascii=False))
    _print(out, outcome)
    _end_or_leave_running(out, keep=keep)
    if outcome.problems:
        raise typer.Exit(_GAPS_REMAIN)


class _Demo:
    """The steps of a demo, in order."""

    def __init__(self, out: Console, *, days: int, seed: int) -> None:
        self._out = out
        self._days = days
        self._seed = seed
        self._reported: set[tuple[datetime, str, str]] = set()
        self._began = time.monotonic()

    def run(self) -> DemoOutcome:
        """Run all steps."""
        _start_over(self._out)
        self._title("The local stack: Kafka, PostgreSQL, Airflow")
        _follow(self._out, _makewhole("up"))
        status = json_text.loads(_output_of(_makewhole("status", "--json")))
        _refuse_used_stack()
        self._title("Days of real departures, with real mistakes")
        environment = _example_environment(status)
        state = str(home_folder() / "flights")
        run = _example("run", "--days", str(self._days), "--seed", str(self._seed), "--state", state)
        _follow(self._out, run, environment)
        planted = planted_ones(_rows(_output_of(_example("planted"), environment)))
        self._title(f"One run a day, by Airflow's backfill: {len(planted)} findings are planted")
        self._backfill(status["airflow"])
        self._title("The independent proof: plain SQL, a plain consumer")
        proof = json_text.loads(_output_of(_example("verify"), environment, may_fail=True))
        return self._outcome(planted, proof, status["airflow"]["url"])

    def _backfill(self, access: Mapping[str, str]) -> None:
        last = _FIRST + timedelta(days=self._days - 1)
        in_detail = self._days <= _MOST_DAYS_IN_DETAIL
        with airflow(Access(url=access["url"], user=access["user"], password=access["password"])) as api:
            api.wait_for_dag(_DAG)
            dag = Backfill(api, _DAG)
            dag.backfill(_FIRST, last)
            watcher = Watcher(task=self._report_task if in_detail else _ignore, run=self._report_run)
            dag.watch(_FIRST, last, self._days, watcher)

    def _outcome(self, planted: frozenset[Discrepancy], proof: Mapping[str, Any], url: str) -> DemoOutcome:
        found = found_ones(_rows(_output_of(_makewhole("findings", _PIPELINE, "--json"), may_fail=True)))
        windows = _rows(_output_of(_makewhole("windows", _PIPELINE, "--json"), may_fail=True))
        wrong_now = frozenset(Discrepancy(**row) for row in proof["wrong"])
        return DemoOutcome(
            lines=lines(planted, found, wrong_now),
            missed=sorted(planted - found),
            invented=sorted(found - planted),
            windows=_latest(windows),
            expected_windows=self._days,
            proof=proof,
            seconds=time.monotonic() - self._began,
            airflow_url=url,
        )

    def _report_task(self, day: datetime, task: str, state: str, seconds: float | None) -> None:
        took = f" {seconds:.1f} s" if seconds and state == "success" else ""
        if state in _REPORTED_STATES and (day, task, state) not in self._reported:
            self._reported.add((day, task, state))
            self._out.print(f"  {day:%Y-%m-%d}  {task}: {state}{took}")

    def _report_run(self, day: datetime, state: str, seconds: float | None) -> None:
        colour = "green" if state == "success" else "red"
        self._out.print(Text.assemble(f"  {day:%Y-%m-%d}  ", (state, colour), f" after {seconds or 0:.0f} s"))

    def _title(self, text: str) -> None:
        self._out.print(Text.assemble((f"\n[{time.monotonic() - self._began:5.0f} s] {text}", "bold")))


def _latest(windows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the latest revision of each window, oldest window first."""
    by_number = {window["window"]: window for window in sorted(windows, key=lambda window: window.get("revision", 1))}
    return [by_number[number] for number in sorted(by_number)]


def _ignore(day: datetime, task: str, state: str, seconds: float | None) -> None:
    """Report no tasks: a year has too many of them."""


def _print(out: Console, outcome: DemoOutcome) -> None:
    out.print()
    out.print(as_table(outcome.lines))
    proof = outcome.proof
    out.print(
        f"proof: {proof['ledger']} flights in the ledger, {proof['topic_flights']} in the topic "
        f"({proof['topic_records']} records), {proof['warehouse_flights']} in the warehouse "
        f"({proof['warehouse_rows']} rows)"
    )
    out.print(f"windows: {outcome.certified} of {outcome.expected_windows} certified")
    for window in outcome.windows[-3:]:
        out.print(f"  window {window['window']}: {window_text(window)}")
    for discrepancy in [*outcome.missed[:5], *outcome.invented[:5]]:
        kind = "missed" if discrepancy in outcome.missed else "invented"
        out.print(f"  {kind}: {discrepancy.hop} {discrepancy.verdict} {discrepancy.key}")
    out.print(f"Airflow: {outcome.airflow_url}/dags/{_DAG}  (user and password: makewhole status)")
    out.print("Certificates: makewhole windows flights, makewhole certificate verify flights")
    if outcome.problems:
        out.print(Text.assemble(("not whole: ", "bold red"), "; ".join(outcome.problems)))
    else:
        out.print(
            Text.assemble(("whole: ", "bold green"), f"found is exactly what was planted ({outcome.seconds:.0f} s)")
        )


def window_text(window: Mapping[str, Any]) -> str:
    """Return the state of a window; of a certified one from where on it is proven, and what it leaves to others."""
    certificate, parts = window["certificate"], [str(window["state"])]
    if certificate and certificate["reach"]:
        parts.append(f"from the {certificate['reach']['from']}")
    if window["handed_over"]["keys"]:
        parts.append(f"{window['handed_over']['keys']:,} handed over")
    before = sum(hop["counts"]["before_baseline"] for hop in window["hops"])
    if before:
        parts.append(f"{before:,} before the baseline")
    return ", ".join([*parts, *([str(certificate["uri"])] if certificate else [])])


def _end_or_leave_running(out: Console, *, keep: bool) -> None:
    if keep:
        stop = f"python -m examples.flights stop --state {home_folder() / 'flights'}"
        out.print(f"The stack keeps running: `makewhole down` ends it. So does the example's loader: `{stop}`")
        return
    _stop_example()
    _follow(out, _makewhole("down"))


# -- the folder of the stack ---------------------------------------------------------------------------------------


def _start_over(out: Console) -> None:
    """Begin with an empty journal. Only a folder that a demo made itself is emptied for it."""
    if _is_all_ours():
        out.print(f"starting over: {home_folder()} is from an earlier demo")
        _stop_example()
        _follow(out, _makewhole("down"))
        shutil.rmtree(home_folder())
    if not home_folder().exists():
        home_folder().mkdir(parents=True)
        _marker().write_text(json_text.dumps({"is_all_ours": True}), encoding="utf-8")


def _refuse_used_stack() -> None:
    if not _output_of(_makewhole("windows", _PIPELINE, "--json"), may_fail=True).strip():
        return
    raise RefusedError(
        f"the stack in {home_folder()} already holds windows of the pipeline {_PIPELINE}, and no demo "
        "made it; choose another folder: MAKEWHOLE_HOME=<folder> makewhole demo"
    )


def _is_all_ours() -> bool:
    return _marker().exists() and bool(json_text.loads(_marker().read_text(encoding="utf-8"))["is_all_ours"])


def _marker() -> Path:
    return home_folder() / "demo.json"


# -- other processes -----------------------------------------------------------------------------------------------


def _makewhole(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("makewhole")), *arguments]


def _example(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "examples.flights", *arguments]


def _example_environment(status: Mapping[str, Any]) -> dict[str, str]:
    return {"FLIGHTS_BOOTSTRAP": status["kafka"]["bootstrap"], "FLIGHTS_DSN": status["postgres"]["dsn"]}


def _stop_example() -> None:
    _output_of(_example("stop", "--state", str(home_folder() / "flights")), may_fail=True)


def _follow(out: Console, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command whose output people shall see, and send it where our own goes."""
    out.file.flush()
    done = subprocess.run(command, cwd=project_root(), env=_with(environment), stdout=out.file.fileno())
    _require(command, done.returncode)


def _output_of(command: Sequence[str], environment: Mapping[str, str] | None = None, *, may_fail: bool = False) -> str:
    """Run a command for its output. `may_fail`: its exit code says what it found, not that it could not run."""
    done = subprocess.run(command, cwd=project_root(), env=_with(environment), stdout=subprocess.PIPE, text=True)
    if not may_fail:
        _require(command, done.returncode)
    return done.stdout


def _require(command: Sequence[str], code: int) -> None:
    if code:
        name = " ".join([Path(command[0]).name, *command[1:]])
        raise TransientError(f"`{name}` ended with {code}; its message is above")


def _with(environment: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(environment or {})}


def _rows(text: str) -> list[dict[str, Any]]:
    return [json_text.loads(line) for line in text.splitlines() if line.strip()]
