"""Demonstrate with `examples/flights`: days of real departures, one window a day, by Airflow's backfill."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import Access, airflow
from makewhole.cli.demo.backfill import Backfill, Watcher
from makewhole.cli.demo.commands import example
from makewhole.stack.settings import home_folder

FIRST = datetime(2013, 1, 1, 5, tzinfo=UTC)  # as the schedule in flights.yaml cuts the days
DAYS_IN_DATA = 365
_MOST_DAYS_IN_DETAIL = 10
# A task that waits goes in and out of these every few seconds: each is reported once.
_REPORTED_STATES = frozenset({"running", "success", "failed", "upstream_failed", "up_for_retry", "awaiting_input"})


class FlightsDemo:
    """The example of flights, as a demo drives it."""

    name = pipeline = "flights"
    dag = "makewhole_reconcile_flights"
    title = "Days of real departures, with real mistakes"
    variables: Mapping[str, str] = {}

    def __init__(self, *, days: int, seed: int) -> None:
        self.expected_windows = days
        self._seed = seed
        self._reported: set[tuple[datetime, str, str]] = set()

    def environment(self, status: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables by which the example finds its systems."""
        return {"FLIGHTS_BOOTSTRAP": status["kafka"]["bootstrap"], "FLIGHTS_DSN": status["postgres"]["dsn"]}

    @property
    def run(self) -> list[str]:
        """The command that sets the example up, and makes things go wrong."""
        days = str(self.expected_windows)
        return example("flights", "run", "--days", days, "--seed", str(self._seed), *self._state)

    @property
    def stop(self) -> list[str]:
        """The command that ends what the example leaves running."""
        return example("flights", "stop", *self._state)

    @property
    def _state(self) -> list[str]:
        return ["--state", str(home_folder() / "flights")]

    def judge(self, out: Console, access: Mapping[str, str], title: Callable[[str], None], planted: int) -> None:
        """Run a window a day."""
        title(f"One run a day, by Airflow's backfill: {planted} findings are planted")
        last = FIRST + timedelta(days=self.expected_windows - 1)
        in_detail = self.expected_windows <= _MOST_DAYS_IN_DETAIL
        with airflow(Access(url=access["url"], user=access["user"], password=access["password"])) as api:
            api.wait_for_dag(self.dag)
            backfill = Backfill(api, self.dag)
            backfill.backfill(FIRST, last)
            watcher = Watcher(task=self._task_reporter(out) if in_detail else _ignore, run=_run_reporter(out))
            backfill.watch(FIRST, last, self.expected_windows, watcher)

    def counted(self, proof: Mapping[str, Any]) -> str:
        """Sum up the proof."""
        return (
            f"{proof['ledger']} flights in the ledger, {proof['topic_flights']} in the topic "
            f"({proof['topic_records']} records), {proof['warehouse_flights']} in the warehouse "
            f"({proof['warehouse_rows']} rows)"
        )

    def _task_reporter(self, out: Console) -> Callable[[datetime, str, str, float | None], None]:
        def report(day: datetime, task: str, state: str, seconds: float | None) -> None:
            took = f" {seconds:.1f} s" if seconds and state == "success" else ""
            if state in _REPORTED_STATES and (day, task, state) not in self._reported:
                self._reported.add((day, task, state))
                out.print(f"  {day:%Y-%m-%d}  {task}: {state}{took}")

        return report


def _run_reporter(out: Console) -> Callable[[datetime, str, float | None], None]:
    def report(day: datetime, state: str, seconds: float | None) -> None:
        colour = "green" if state == "success" else "red"
        out.print(Text.assemble(f"  {day:%Y-%m-%d}  ", (state, colour), f" after {seconds or 0:.0f} s"))

    return report


def _ignore(day: datetime, task: str, state: str, seconds: float | None) -> None:
    """Report no tasks: a year has too many of them."""
