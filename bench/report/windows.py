"""Write the tables of whole windows."""

from collections.abc import Sequence

from bench.measuring.data_set import millions
from bench.measuring.results import Series, ratio
from bench.report.tables import first_run, peak_mib, seconds, table
from bench.windows.duel import WINDOW
from bench.windows.history import EARLY, HISTORY
from bench.windows.latency import COLUMNS, LATENCY, VERDICT
from bench.windows.on_cluster import CLUSTER, CLUSTER_WINDOW, LOCAL
from bench.windows.scale import SCALE
from bench.windows.stage import MAKEWHOLE


def windows(series: Sequence[Series]) -> str:
    """Return the table of whole windows, each side beside makewhole."""
    head = (
        "| orders | keys wrong | side | s | × time | first run s | × first run | processor time s "
        "| × processor time | peak MiB |\n|---|---|---|---|---|---|---|---|---|---|\n"
    )
    sides = [runs for runs in series if runs.part.startswith(WINDOW)]
    rows = []
    for runs in sides:
        ours = next(
            other for other in sides if (other.part, other.data, other.side) == (runs.part, runs.data, MAKEWHOLE)
        )
        rows.append(
            [
                millions(runs.data.records),
                runs.part.removeprefix(WINDOW),
                runs.side,
                seconds(runs),
                f"**{ratio(ours, runs, 'wall_seconds'):.2f}**",
                *first_run(ours, runs),
                f"{runs.median('cpu_seconds'):.1f}",
                f"{ratio(ours, runs, 'cpu_seconds'):.2f}",
                peak_mib(runs),
            ]
        )
    return head + table(rows)


def scales(series: Sequence[Series]) -> str:
    """Return the table of windows of sizes that are far apart, each beside the first."""
    head = (
        "| orders | keys wrong | s | s per million | × time per record | processor time s per million "
        "| × processor time per record | peak MiB |\n|---|---|---|---|---|---|---|---|\n"
    )
    sizes = [runs for runs in series if runs.part.startswith(SCALE)]
    rows = [
        [
            millions(runs.data.records),
            runs.part.removeprefix(SCALE),
            seconds(runs),
            f"{_per_million(runs, 'wall_seconds'):.2f}",
            f"**{_per_million(runs, 'wall_seconds') / _per_million(sizes[0], 'wall_seconds'):.2f}**",
            f"{_per_million(runs, 'cpu_seconds'):.2f}",
            f"{_per_million(runs, 'cpu_seconds') / _per_million(sizes[0], 'cpu_seconds'):.2f}",
            peak_mib(runs),
        ]
        for runs in sizes
    ]
    return head + table(rows)


def _per_million(runs: Series, figure: str) -> float:
    return runs.median(figure) / (runs.data.records / 1e6)


def on_cluster(series: Sequence[Series]) -> str:
    """Return the table of a window on a cluster, beside the same in one application."""
    head = (
        f"| orders | keys wrong | {LOCAL} s | {CLUSTER} s | × time | {LOCAL} processor time s "
        f"| {CLUSTER} processor time s | × processor time | {LOCAL} peak MiB | {CLUSTER} peak MiB |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    )
    windows = [runs for runs in series if runs.part.startswith(CLUSTER_WINDOW)]
    rows = []
    for local in (runs for runs in windows if runs.side == LOCAL):
        many = next(
            other for other in windows if (other.part, other.data, other.side) == (local.part, local.data, CLUSTER)
        )
        rows.append(
            [
                millions(local.data.records),
                local.part.removeprefix(CLUSTER_WINDOW),
                *(seconds(side) for side in (local, many)),
                f"**{ratio(local, many, 'wall_seconds'):.2f}**",
                *(f"{side.median('cpu_seconds'):.1f}" for side in (local, many)),
                f"{ratio(local, many, 'cpu_seconds'):.2f}",
                *(peak_mib(side) for side in (local, many)),
            ]
        )
    return head + table(rows)


def histories(series: Sequence[Series]) -> str:
    """Return the table of a late day beside an early one."""
    head = (
        "| orders a day | early day | late day | early s | late s | × time | × processor time "
        "| early peak MiB | late peak MiB |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    days = [day for day in series if day.part.startswith(HISTORY)]
    rows = []
    for early in (day for day in days if day.part == f"{HISTORY}{EARLY}"):
        late = next(day for day in days if day.data == early.data and day.part != early.part)
        rows.append(
            [
                millions(early.data.records),
                str(EARLY),
                late.part.removeprefix(HISTORY),
                seconds(early),
                seconds(late),
                f"**{late.median('wall_seconds') / early.median('wall_seconds'):.2f}**",
                f"{late.median('cpu_seconds') / early.median('cpu_seconds'):.2f}",
                *(peak_mib(day) for day in (early, late)),
            ]
        )
    return head + table(rows)


def latencies(series: Sequence[Series]) -> str:
    """Return the table of small windows through Airflow, step by step."""
    head = f"| orders | {' | '.join(f'{name} s' for name in COLUMNS)} |\n|---{'|---' * len(COLUMNS)}|\n"
    rows = []
    for verdict in (runs for runs in series if runs.part == LATENCY + VERDICT):
        parts = {other.part: other for other in series if other.data == verdict.data}
        rows.append([millions(verdict.data.records), *(seconds(parts[LATENCY + name]) for name in COLUMNS)])
    return head + table(rows)
