"""Measure what a window costs on an early day of a pipeline and on a late one: from spark-submit to the gate's answer.

The first two days and the last one are judged by the real steps; those between are simulated. An order of the first day
is sent again on the last one, and has to be found with its place.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measuring.data_set import DataSet, millions
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.windows.history_data import DAY, History, key_of, make_history_topic, make_tables, send_day
from bench.windows.orders import LEDGER_HOP, Counts
from bench.windows.service import PIPELINE, Service
from bench.windows.simulated_days import SimulatedDays
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.model.window import Window, WindowState
from makewhole.stack.postgres_server import PostgresServer

HISTORY = "history "
"""Marks the name of each part, at its start."""
SIDE = "makewhole"
EARLY = 2
"""The day that the last one is held against."""
_MIB = 2**20
Report = Callable[[str], None]


def measured(bootstrap: str, folder: Path, history: History, runs: int, report: Report) -> Iterator[Series]:
    """Measure so many runs of the early day and of the last one; each run is a revision of the window."""
    home = folder / history.name
    with PostgresServer(home / "postgres", is_durable=False) as server:
        service = _service(server, bootstrap, home, history)
        places = send_day(bootstrap, history, 1)
        _judged(service, history, 1, 1, report)
        send_day(bootstrap, history, EARLY)
        early, counts, costs = _judged(service, history, EARLY, runs, report)
        _require({}, counts)
        yield _series(history, EARLY, costs)
        with_rows = tuple(history.days_with_rows)
        index = SimulatedDays(like=early, last=history.days - 1, with_rows=with_rows).write(service)
        report(
            f"history  {index.windows} days: {index.rows:,} rows in {index.runs} runs of the key index, "
            f"{index.size_bytes / _MIB:.0f} MiB, {index.size_bytes / index.rows:.1f} bytes a row"
        )
        again = history.numbers(1)[0]
        send_day(bootstrap, history, history.days, again=again)
        last, counts, costs = _judged(service, history, history.days, runs, report)
        _require({(LEDGER_HOP, "duplicate"): 1}, counts)
        _require_place(service, last, key_of(again), places[key_of(again)])
        yield _series(history, history.days, costs)


def _service(server: PostgresServer, bootstrap: str, home: Path, history: History) -> Service:
    service = Service.at(server, bootstrap, home)
    make_tables(service.database, history)
    make_history_topic(bootstrap, history)
    service.write_pipeline(history.pipeline_file(PIPELINE))
    return service


def _judged(
    service: Service, history: History, day: int, runs: int, report: Report
) -> tuple[Window, Counts, list[Cost]]:
    """Judge a day so many times, and close it; return its last revision with its verdicts, and the costs."""
    costs = []
    for _ in range(runs):
        window = service.open_window(history.begin(day) + DAY)
        counts, cost, message = service.run_window(window)
        costs.append(cost)
        report(
            f"history  day {day:3} × {millions(history.orders):10} {cost.wall_seconds:6.1f} s, "
            f"{cost.cpu_seconds:6.1f} s of cores, {(cost.python_bytes + cost.jvm_bytes) / _MIB:.0f} MiB: {message}"
        )
    with connect(service.journal) as journal:
        windows.close(journal, window, WindowState.CERTIFIED, None)
    return window, {place: keys for place, keys in counts.items() if keys}, costs


def _series(history: History, day: int, costs: list[Cost]) -> Series:
    return Series(part=f"{HISTORY}{day}", side=SIDE, data=DataSet(records=history.orders), warm=costs)


def _require(planted: Counts, counts: Counts) -> None:
    if counts != planted:
        raise RuntimeError(f"found {counts}, planted are {planted}")


def _require_place(service: Service, window: Window, key: str, place: str) -> None:
    """Require that the repeated order was found with the place of its first record."""
    with connect(service.journal) as journal:
        findings = [item.finding for item in window_findings.findings(journal, window)]
    elsewhere = {finding.key: finding.evidence.get("elsewhere") for finding in findings}
    if elsewhere != {key: [place]}:
        raise RuntimeError(f"found {elsewhere}, planted is {key}, which lies at {place}, too")
