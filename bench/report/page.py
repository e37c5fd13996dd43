"""Write the results as a page: `results.md`."""

from collections.abc import Sequence

from bench.measuring.results import Results, Series
from bench.repairs.findings import FINDINGS
from bench.report import repairs, topics, windows
from bench.report.tables import mib, table
from bench.topics.elements import ELEMENTS
from bench.topics.formats import FORMAT
from bench.windows.duel import WINDOW
from bench.windows.history import HISTORY
from bench.windows.latency import LATENCY
from bench.windows.on_cluster import CLUSTER_WINDOW
from bench.windows.scale import SCALE

_ABOUT = """\
Made by `make bench`; what each figure means and how to read it stands in `bench/README.md`. Times are seconds, the
median of the warm runs and their range; **×** is how many times as long the peer takes, the median over pairs of runs
that followed each other. Processor time is user and system time of all processes of a side, the broker's not counted.
"""


def page(results: Results) -> str:
    """Return the whole page, in Markdown."""
    series = [runs for measured in results.values() for runs in measured.series]
    parts = [
        f"# Benchmarks\n\n{_ABOUT}",
        "## Machines\n\n" + _machines(results),
        "## Reading a topic into Spark\n\n" + topics.duels(series, "read"),
        "## Reading a topic and writing it to Parquet\n\n" + topics.duels(series, "write"),
        "## Scanning batch headers, one core\n\n" + topics.scans(series),
        "## Snapshot of a topic: decoded, hashed, bucketed, archived\n\n" + topics.snapshots(series),
        "## Decoding binary values to typed columns, on one core\n\n" + topics.formats(series),
        "## Dividing records into typed elements\n\n" + topics.elements(series),
        "## Replaying a plan into a topic, exactly once, 10,000 records per transaction\n\n" + repairs.replays(series),
        "## Upserting a plan into PostgreSQL, exactly once, 10,000 rows per transaction\n\n" + repairs.upserts(series),
        "## A whole window, from spark-submit to the gate's answer, in fresh processes\n\n" + windows.windows(series),
        "## A whole window at sizes that are far apart: what a record costs at each\n\n" + windows.scales(series),
        "## The same window on a cluster, a master and two workers of one core, and in one application, on one machine"
        "\n\n" + windows.on_cluster(series),
        "## A day's window with few and with many days before it\n\n" + windows.histories(series),
        "## A small window through Airflow, from the trigger to the verdict\n\n" + windows.latencies(series),
        "## A window with many findings, step by step, each in a process of its own\n\n" + repairs.findings(series),
        "## Memory\n\n" + _memory(series),
    ]
    return "\n".join(parts)


def _machines(results: Results) -> str:
    """Name the machine and the day on which each part was measured: parts of one machine, with the same versions,
    together."""
    together: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, measured in results.items():
        part = f"{name} ({measured.day}, load before it {measured.load:.1f})"
        together.setdefault(tuple(measured.machine.items()), []).append(part)
    return "\n".join(
        f"{', '.join(parts)}:\n\n| | |\n|---|---|\n" + "".join(f"| {name} | {text} |\n" for name, text in machine)
        for machine, parts in together.items()
    )


_WITHOUT_MEMORY = (FORMAT, ELEMENTS, WINDOW, SCALE, CLUSTER_WINDOW, HISTORY, LATENCY, FINDINGS)


def _memory(series: Sequence[Series]) -> str:
    head = "| part | side | data | Python's peak MiB | the Java machine's peak MiB |\n|---|---|---|---|---|\n"
    rows = [
        [runs.part, runs.side, runs.data.title, mib(runs.peak("python_bytes")), mib(runs.peak("jvm_bytes"))]
        for runs in series
        if runs.part != "scan" and not runs.part.startswith(_WITHOUT_MEMORY)
    ]
    return head + table(rows)
