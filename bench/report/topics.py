"""Write the tables of what is done with topics: reading, scanning, snapshots."""

from collections.abc import Sequence

from bench.measuring.data_set import millions
from bench.measuring.results import Series, ratio
from bench.report.tables import cold_seconds, mib, per_second, seconds, table
from bench.topics.element_values import LINES
from bench.topics.elements import ELEMENTS, EXPLODE
from bench.topics.formats import FORMAT
from bench.topics.reads import CONNECTOR, KAFKA_LOG
from bench.topics.snapshots import BY_HAND, MAKEWHOLE


def duels(series: Sequence[Series], part: str) -> str:
    """Return the table of reading, or of writing, beside the connector."""
    head = (
        f"| data | {KAFKA_LOG} s | {CONNECTOR} s | × time | {KAFKA_LOG} M records/s | {CONNECTOR} M records/s "
        "| × processor time | first run in a session s |\n|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (runs for runs in series if runs.part == part and runs.side == KAFKA_LOG):
        theirs = next(runs for runs in series if (runs.part, runs.side, runs.data) == (part, CONNECTOR, ours.data))
        rows.append(
            [
                ours.data.title,
                seconds(ours),
                seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                per_second(ours.records_per_second),
                per_second(theirs.records_per_second),
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
                cold_seconds(ours, theirs),
            ]
        )
    return head + table(rows)


def scans(series: Sequence[Series]) -> str:
    """Return the table of scans."""
    head = "| data | checksums | s | M records/s | M records per processor second |\n|---|---|---|---|---|\n"
    rows = [
        [
            runs.data.title,
            runs.side,
            seconds(runs),
            per_second(runs.records_per_second),
            per_second(runs.records_per_cpu_second),
        ]
        for runs in series
        if runs.part == "scan"
    ]
    return head + table(rows)


def snapshots(series: Sequence[Series]) -> str:
    """Return the table of snapshots, beside those by hand."""
    head = (
        f"| data | {MAKEWHOLE} s | {BY_HAND} s | × time | {MAKEWHOLE} M records/s | M records per processor second "
        "| × processor time | written MiB | first run in a session s |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (runs for runs in series if runs.part == "snapshot" and runs.side == MAKEWHOLE):
        theirs = next(runs for runs in series if (runs.part, runs.side, runs.data) == ("snapshot", BY_HAND, ours.data))
        rows.append(
            [
                ours.data.title,
                seconds(ours),
                seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"**{per_second(ours.records_per_second)}**",
                per_second(ours.records_per_cpu_second),
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
                f"{mib(ours.written_bytes or 0)} with the archive, {mib(theirs.written_bytes or 0)} without",
                cold_seconds(ours, theirs),
            ]
        )
    return head + table(rows)


def formats(series: Sequence[Series]) -> str:
    """Return the table of binary formats: of Protobuf makewhole's side alone, Spark's jar is in no registry here."""
    head = "| format | records | side | s | M records/s | M records per processor second |\n|---|---|---|---|---|---|\n"
    rows = [
        [
            runs.part.removeprefix(FORMAT),
            millions(runs.data.records),
            runs.side,
            seconds(runs),
            per_second(runs.records_per_second),
            f"**{per_second(runs.records_per_cpu_second)}**",
        ]
        for runs in series
        if runs.part.startswith(FORMAT)
    ]
    return head + table(rows)


def elements(series: Sequence[Series]) -> str:
    """Return the table of records that are divided: makewhole on one core, Spark in a session of two; of Protobuf
    makewhole's side alone."""
    head = (
        f"| format | elements | to a record | {MAKEWHOLE} s | {EXPLODE} s "
        f"| {MAKEWHOLE} M elements per processor second | {EXPLODE} M elements per processor second "
        "| × processor time |\n|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (runs for runs in series if runs.part.startswith(ELEMENTS) and runs.side == MAKEWHOLE):
        peers = (runs for runs in series if (runs.part, runs.side, runs.data) == (ours.part, EXPLODE, ours.data))
        theirs = next(peers, None)
        rows.append(
            [
                ours.part.removeprefix(ELEMENTS),
                millions(ours.data.records),
                str(LINES),
                seconds(ours),
                "–" if theirs is None else seconds(theirs),
                per_second(ours.records_per_cpu_second),
                "–" if theirs is None else per_second(theirs.records_per_cpu_second),
                "–" if theirs is None else f"**{ratio(ours, theirs, 'cpu_seconds'):.2f}**",
            ]
        )
    return head + table(rows)
