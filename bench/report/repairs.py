"""Write the tables of repairs: replays, upserts, windows with many findings."""

from collections.abc import Sequence

from bench.measuring.data_set import millions
from bench.measuring.results import Series, ratio
from bench.repairs.findings import FINDINGS
from bench.repairs.replays import PRODUCER, REPLAY
from bench.repairs.upserts import COPY, MISMATCHED, MISSING, UPSERT
from bench.report.tables import peak_mib, seconds, table


def replays(series: Sequence[Series]) -> str:
    """Return the table of replays, beside a plain producer."""
    head = (
        f"| data | {REPLAY} s | {PRODUCER} s | × time | {REPLAY} k records/s | {PRODUCER} k records/s "
        "| × processor time |\n|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (runs for runs in series if runs.side == REPLAY and runs.part == "replay"):
        theirs = next(runs for runs in series if (runs.part, runs.side, runs.data) == ("replay", PRODUCER, ours.data))
        rows.append(
            [
                ours.data.title,
                seconds(ours),
                seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"**{ours.records_per_second / 1e3:.0f}**",
                f"{theirs.records_per_second / 1e3:.0f}",
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
            ]
        )
    return head + table(rows)


def upserts(series: Sequence[Series]) -> str:
    """Return the table of upserts, beside a plain COPY."""
    head = (
        f"| data | keys are | {UPSERT} s | {COPY} s | × time | {UPSERT} k rows/s | {COPY} k rows/s |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (runs for runs in series if runs.side == UPSERT and runs.part in (MISSING, MISMATCHED)):
        theirs = next(runs for runs in series if (runs.part, runs.side, runs.data) == (ours.part, COPY, ours.data))
        rows.append(
            [
                ours.data.title,
                ours.part.split()[1],
                seconds(ours),
                seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"**{ours.records_per_second / 1e3:.1f}**",
                f"{theirs.records_per_second / 1e3:.1f}",
            ]
        )
    return head + table(rows)


def findings(series: Sequence[Series]) -> str:
    """Return the table of windows with many findings, step by step."""
    head = "| findings | step | s | processor time s | peak MiB |\n|---|---|---|---|---|\n"
    rows = [
        [
            millions(runs.data.records),
            runs.part.removeprefix(FINDINGS),
            f"{runs.median('wall_seconds'):.1f}",
            f"{runs.median('cpu_seconds'):.1f}",
            peak_mib(runs),
        ]
        for runs in series
        if runs.part.startswith(FINDINGS)
    ]
    return head + table(rows)
