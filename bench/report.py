"""Write the results as a page: `results.md`."""

from collections.abc import Iterable, Sequence

from bench.data import millions
from bench.findings import FINDINGS
from bench.history import EARLY, HISTORY
from bench.latency import COLUMNS, LATENCY, VERDICT
from bench.reads import CONNECTOR, KAFKA_LOG
from bench.replays import PRODUCER, REPLAY
from bench.results import Series, ratio
from bench.snapshots import BY_HAND, MAKEWHOLE
from bench.upserts import COPY, MISMATCHED, MISSING, UPSERT
from bench.windows import WINDOW

_MIB = 2**20
_ABOUT = """\
Made by `make bench`; what each figure means and how to read it stands in `bench/README.md`. Times are seconds, the
median of the warm runs and their range; **×** is how many times as long the peer takes, the median over pairs of runs
that followed each other. Processor time is user and system time of all processes of a side, the broker's not counted.
"""


def page(machine: dict[str, str], load: float, series: Sequence[Series]) -> str:
    """Return the whole page, in Markdown."""
    told = "".join(f"| {name} | {text} |\n" for name, text in machine.items())
    parts = [
        f"# Benchmarks\n\n{_ABOUT}\nLoad of the machine before the run: {load:.1f}.\n",
        f"## Machine\n\n| | |\n|---|---|\n{told}",
        "## Reading a topic into Spark\n\n" + _duels(series, "read"),
        "## Reading a topic and writing it to Parquet\n\n" + _duels(series, "write"),
        "## Scanning batch headers, one core\n\n" + _scans(series),
        "## Snapshot of a topic: decoded, hashed, bucketed, archived\n\n" + _snapshots(series),
        "## Replaying a plan into a topic, exactly once, 10,000 records per transaction\n\n" + _replays(series),
        "## Upserting a plan into PostgreSQL, exactly once, 10,000 rows per transaction\n\n" + _upserts(series),
        "## A whole window, from spark-submit to the gate's answer, in fresh processes\n\n" + _windows(series),
        "## A day's window with few and with many days before it\n\n" + _histories(series),
        "## A small window through Airflow, from the trigger to the verdict\n\n" + _latencies(series),
        "## A window with many findings, step by step, each in a process of its own\n\n" + _findings(series),
        "## Memory\n\n" + _memory(series),
    ]
    return "\n".join(parts)


def _duels(series: Sequence[Series], part: str) -> str:
    head = (
        f"| data | {KAFKA_LOG} s | {CONNECTOR} s | × time | {KAFKA_LOG} M records/s | {CONNECTOR} M records/s "
        "| × processor time | first run in a session s |\n|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (one for one in series if one.part == part and one.side == KAFKA_LOG):
        theirs = next(one for one in series if (one.part, one.side, one.data) == (part, CONNECTOR, ours.data))
        rows.append(
            [
                ours.data.title,
                _seconds(ours),
                _seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                _millions(ours.records_per_second),
                _millions(theirs.records_per_second),
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
                _colds(ours, theirs),
            ]
        )
    return head + _table(rows)


def _scans(series: Sequence[Series]) -> str:
    head = "| data | checksums | s | M records/s | M records per processor second |\n|---|---|---|---|---|\n"
    rows = [
        [
            one.data.title,
            one.side,
            _seconds(one),
            _millions(one.records_per_second),
            _millions(one.records_per_cpu_second),
        ]
        for one in series
        if one.part == "scan"
    ]
    return head + _table(rows)


def _snapshots(series: Sequence[Series]) -> str:
    head = (
        f"| data | {MAKEWHOLE} s | {BY_HAND} s | × time | {MAKEWHOLE} M records/s | M records per processor second "
        "| × processor time | written MiB | first run in a session s |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (one for one in series if one.part == "snapshot" and one.side == MAKEWHOLE):
        theirs = next(one for one in series if (one.part, one.side, one.data) == ("snapshot", BY_HAND, ours.data))
        rows.append(
            [
                ours.data.title,
                _seconds(ours),
                _seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"**{_millions(ours.records_per_second)}**",
                _millions(ours.records_per_cpu_second),
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
                f"{_mib(ours.written_bytes or 0)} with the archive, {_mib(theirs.written_bytes or 0)} without",
                _colds(ours, theirs),
            ]
        )
    return head + _table(rows)


def _replays(series: Sequence[Series]) -> str:
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
                _seconds(ours),
                _seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"**{ours.records_per_second / 1e3:.0f}**",
                f"{theirs.records_per_second / 1e3:.0f}",
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
            ]
        )
    return head + _table(rows)


def _upserts(series: Sequence[Series]) -> str:
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
                _seconds(ours),
                _seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"**{ours.records_per_second / 1e3:.1f}**",
                f"{theirs.records_per_second / 1e3:.1f}",
            ]
        )
    return head + _table(rows)


def _windows(series: Sequence[Series]) -> str:
    head = (
        f"| orders | keys wrong | {MAKEWHOLE} s | {BY_HAND} s | × time | × processor time | {MAKEWHOLE} MiB "
        f"| {BY_HAND} MiB |\n|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for ours in (one for one in series if one.part.startswith(WINDOW) and one.side == MAKEWHOLE):
        theirs = next(one for one in series if (one.part, one.side, one.data) == (ours.part, BY_HAND, ours.data))
        rows.append(
            [
                millions(ours.data.records),
                ours.part.removeprefix(WINDOW),
                _seconds(ours),
                _seconds(theirs),
                f"**{ratio(ours, theirs, 'wall_seconds'):.2f}**",
                f"{ratio(ours, theirs, 'cpu_seconds'):.2f}",
                *(_mib(one.peak("python_bytes") + one.peak("jvm_bytes")) for one in (ours, theirs)),
            ]
        )
    return head + _table(rows)


def _histories(series: Sequence[Series]) -> str:
    head = (
        "| orders a day | early day | late day | early s | late s | × time | × processor time "
        "| early MiB | late MiB |\n"
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
                _seconds(early),
                _seconds(late),
                f"**{late.median('wall_seconds') / early.median('wall_seconds'):.2f}**",
                f"{late.median('cpu_seconds') / early.median('cpu_seconds'):.2f}",
                *(_mib(one.peak("python_bytes") + one.peak("jvm_bytes")) for one in (early, late)),
            ]
        )
    return head + _table(rows)


def _latencies(series: Sequence[Series]) -> str:
    head = f"| orders | {' | '.join(f'{name} s' for name in COLUMNS)} |\n|---{'|---' * len(COLUMNS)}|\n"
    rows = []
    for one in (one for one in series if one.part == LATENCY + VERDICT):
        parts = {other.part: other for other in series if other.data == one.data}
        rows.append([millions(one.data.records), *(_seconds(parts[LATENCY + name]) for name in COLUMNS)])
    return head + _table(rows)


def _findings(series: Sequence[Series]) -> str:
    head = "| findings | step | s | processor time s | peak MiB |\n|---|---|---|---|---|\n"
    rows = [
        [
            millions(one.data.records),
            one.part.removeprefix(FINDINGS),
            f"{one.median('wall_seconds'):.1f}",
            f"{one.median('cpu_seconds'):.1f}",
            _mib(one.peak("python_bytes") + one.peak("jvm_bytes")),
        ]
        for one in series
        if one.part.startswith(FINDINGS)
    ]
    return head + _table(rows)


def _memory(series: Sequence[Series]) -> str:
    head = "| part | side | data | Python's peak MiB | the Java machine's peak MiB |\n|---|---|---|---|---|\n"
    rows = [
        [one.part, one.side, one.data.title, _mib(one.peak("python_bytes")), _mib(one.peak("jvm_bytes"))]
        for one in series
        if one.part != "scan" and not one.part.startswith((WINDOW, HISTORY, LATENCY, FINDINGS))
    ]
    return head + _table(rows)


def _table(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _seconds(one: Series) -> str:
    low, high = one.range("wall_seconds")
    return f"{one.median('wall_seconds'):.2f} ({low:.2f}–{high:.2f})"


def _colds(ours: Series, theirs: Series) -> str:
    if ours.cold is None or theirs.cold is None:
        return ""
    return f"{ours.cold.wall_seconds:.2f} against {theirs.cold.wall_seconds:.2f}"


def _millions(per_second: float) -> str:
    return f"{per_second / 1e6:.2f}"


def _mib(size_bytes: float) -> str:
    return f"{size_bytes / _MIB:.0f}"
