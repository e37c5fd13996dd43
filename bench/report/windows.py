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
    found = [one for one in series if one.part.startswith(WINDOW)]
    rows = []
    for one in found:
        ours = next(other for other in found if (other.part, other.data, other.side) == (one.part, one.data, MAKEWHOLE))
        rows.append(
            [
                millions(one.data.records),
                one.part.removeprefix(WINDOW),
                one.side,
                seconds(one),
                f"**{ratio(ours, one, 'wall_seconds'):.2f}**",
                *first_run(ours, one),
                f"{one.median('cpu_seconds'):.1f}",
                f"{ratio(ours, one, 'cpu_seconds'):.2f}",
                peak_mib(one),
            ]
        )
    return head + table(rows)


def scales(series: Sequence[Series]) -> str:
    """Return the table of windows of sizes that are far apart, each beside the first."""
    head = (
        "| orders | keys wrong | s | s per million | × time per record | processor time s per million "
        "| × processor time per record | peak MiB |\n|---|---|---|---|---|---|---|---|\n"
    )
    sizes = [one for one in series if one.part.startswith(SCALE)]
    rows = [
        [
            millions(one.data.records),
            one.part.removeprefix(SCALE),
            seconds(one),
            f"{_per_million(one, 'wall_seconds'):.2f}",
            f"**{_per_million(one, 'wall_seconds') / _per_million(sizes[0], 'wall_seconds'):.2f}**",
            f"{_per_million(one, 'cpu_seconds'):.2f}",
            f"{_per_million(one, 'cpu_seconds') / _per_million(sizes[0], 'cpu_seconds'):.2f}",
            peak_mib(one),
        ]
        for one in sizes
    ]
    return head + table(rows)


def _per_million(one: Series, figure: str) -> float:
    return one.median(figure) / (one.data.records / 1e6)


def on_cluster(series: Sequence[Series]) -> str:
    """Return the table of a window on a cluster, beside the same in one application."""
    head = (
        f"| orders | keys wrong | {LOCAL} s | {CLUSTER} s | × time | {LOCAL} processor time s "
        f"| {CLUSTER} processor time s | × processor time | {LOCAL} peak MiB | {CLUSTER} peak MiB |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    )
    windows = [one for one in series if one.part.startswith(CLUSTER_WINDOW)]
    rows = []
    for one in (one for one in windows if one.side == LOCAL):
        many = next(other for other in windows if (other.part, other.data, other.side) == (one.part, one.data, CLUSTER))
        rows.append(
            [
                millions(one.data.records),
                one.part.removeprefix(CLUSTER_WINDOW),
                *(seconds(side) for side in (one, many)),
                f"**{ratio(one, many, 'wall_seconds'):.2f}**",
                *(f"{side.median('cpu_seconds'):.1f}" for side in (one, many)),
                f"{ratio(one, many, 'cpu_seconds'):.2f}",
                *(peak_mib(side) for side in (one, many)),
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
    days = [one for one in series if one.part.startswith(HISTORY)]
    rows = []
    for early in (one for one in days if one.part == f"{HISTORY}{EARLY}"):
        late = next(one for one in days if one.data == early.data and one.part != early.part)
        rows.append(
            [
                millions(early.data.records),
                str(EARLY),
                late.part.removeprefix(HISTORY),
                seconds(early),
                seconds(late),
                f"**{late.median('wall_seconds') / early.median('wall_seconds'):.2f}**",
                f"{late.median('cpu_seconds') / early.median('cpu_seconds'):.2f}",
                *(peak_mib(one) for one in (early, late)),
            ]
        )
    return head + table(rows)


def latencies(series: Sequence[Series]) -> str:
    """Return the table of small windows through Airflow, step by step."""
    head = f"| orders | {' | '.join(f'{name} s' for name in COLUMNS)} |\n|---{'|---' * len(COLUMNS)}|\n"
    rows = []
    for one in (one for one in series if one.part == LATENCY + VERDICT):
        parts = {other.part: other for other in series if other.data == one.data}
        rows.append([millions(one.data.records), *(seconds(parts[LATENCY + name]) for name in COLUMNS)])
    return head + table(rows)
