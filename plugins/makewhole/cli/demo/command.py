"""Run `makewhole demo`: plant mistakes in an example's pipeline, find, repair, prove."""

import json as json_text
import os
import subprocess
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.demo.cdc import CdcDemo
from makewhole.cli.demo.commands import example, json_lines, makewhole, output_of, show
from makewhole.cli.demo.flights import DAYS_IN_DATA, FlightsDemo
from makewhole.cli.demo.outcome import DemoOutcome, read_outcome, show_outcome
from makewhole.cli.demo.stack_folder import refuse_used_stack, start_over
from makewhole.cli.environment import console
from makewhole.model.errors import MakewholeError

_GAPS_REMAIN, _COULD_NOT_RUN = 1, 4


class Example(StrEnum):
    """The examples that a demo can run."""

    FLIGHTS = "flights"
    CDC = "cdc"


class _Driver(Protocol):
    """An example as a demo drives it. `variables` are those of the service; `run` and `stop` are commands."""

    name: str
    pipeline: str
    dag: str
    title: str
    expected_windows: int
    variables: Mapping[str, str]

    @property
    def run(self) -> list[str]: ...

    @property
    def stop(self) -> list[str]: ...

    def environment(self, status: Mapping[str, Any]) -> dict[str, str]: ...

    def judge(self, out: Console, access: Mapping[str, str], title: Any, planted: int) -> None: ...

    def counted(self, proof: Mapping[str, Any]) -> str: ...


def demo(
    which: Annotated[
        Example,
        typer.Option("--example", help="flights: our own producer and loader. cdc: Debezium and a JDBC sink."),
    ] = Example.FLIGHTS,
    days: Annotated[int, typer.Option(min=1, max=DAYS_IN_DATA, help="Of flights: days of 2013, one window each.")] = 3,
    year: Annotated[bool, typer.Option("--year", help="Of flights: all 365 days, 336,776 departures.")] = False,
    seed: Annotated[int, typer.Option(help="Which keys the mistakes hit.")] = 7,
    keep: Annotated[bool, typer.Option(help="Leave the stack running at the end, to look around.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object; progress goes to stderr.")] = False,
) -> None:
    """Plant mistakes in a real pipeline; find, repair, prove. Exit code 0 only if all of it came true."""
    out = console(stderr=json)
    flights = FlightsDemo(days=DAYS_IN_DATA if year else days, seed=seed)
    driver = flights if which is Example.FLIGHTS else CdcDemo(seed=seed)
    os.environ.update(driver.variables)
    try:
        outcome = _Demo(out, driver).run()
    except (MakewholeError, subprocess.TimeoutExpired) as error:
        out.print(Text.assemble(("could not run: ", "bold red"), str(error)))
        raise typer.Exit(_COULD_NOT_RUN) from error
    if json:
        typer.echo(json_text.dumps(outcome.document(), ensure_ascii=False))
    show_outcome(out, outcome, driver.pipeline, driver.counted(outcome.proof), driver.dag)
    _end_or_leave_running(out, driver, keep=keep)
    if outcome.problems:
        raise typer.Exit(_GAPS_REMAIN)


class _Demo:
    """The steps of a demo, in order."""

    def __init__(self, out: Console, driver: _Driver) -> None:
        self._out = out
        self._driver = driver
        self._began = time.monotonic()

    def run(self) -> DemoOutcome:
        """Run all steps."""
        driver = self._driver
        start_over(self._out, lambda: _stop(driver))
        self._title("The local stack: Kafka, PostgreSQL, Airflow")
        show(self._out, makewhole("up"))
        status = json_text.loads(output_of(makewhole("status", "--json")))
        refuse_used_stack(driver.pipeline)
        self._title(driver.title)
        environment = driver.environment(status)
        show(self._out, driver.run, environment)
        planted = json_lines(output_of(example(driver.name, "planted"), environment))
        driver.judge(self._out, status["airflow"], self._title, len(planted))
        self._title("The independent proof: plain SQL, a plain consumer")
        proof = json_text.loads(output_of(example(driver.name, "verify"), environment, may_fail=True))
        return read_outcome(
            driver.pipeline,
            planted,
            proof,
            expected_windows=driver.expected_windows,
            began=self._began,
            url=status["airflow"]["url"],
        )

    def _title(self, text: str) -> None:
        self._out.print(Text.assemble((f"\n[{time.monotonic() - self._began:5.0f} s] {text}", "bold")))


def _end_or_leave_running(out: Console, driver: _Driver, *, keep: bool) -> None:
    if keep:
        command = " ".join(["python", *driver.stop[1:]])
        out.print(f"The stack keeps running: `makewhole down` ends it. So does what the example runs: `{command}`")
        return
    _stop(driver)
    show(out, makewhole("down"))


def _stop(driver: _Driver) -> None:
    output_of(driver.stop, may_fail=True)
