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
    for ours in (one for one in series if one.side == REPLAY and one.part == "replay"):
        theirs = next(one for one in series if (one.part, one.side, one.data) == ("replay", PRODUCER, ours.data))
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
    for ours in (one for one in series if one.side == UPSERT and one.part in (MISSING, MISMATCHED)):
        theirs = next(one for one in series if (one.part, one.side, one.data) == (ours.part, COPY, ours.data))
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
            millions(one.data.records),
            one.part.removeprefix(FINDINGS),
            f"{one.median('wall_seconds'):.1f}",
            f"{one.median('cpu_seconds'):.1f}",
            peak_mib(one),
        ]
        for one in series
        if one.part.startswith(FINDINGS)
    ]
    return head + table(rows)
