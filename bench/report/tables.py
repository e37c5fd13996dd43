"""Format figures and rows for the page."""

from collections.abc import Iterable, Sequence

from bench.measuring.results import Series

_MIB = 2**20


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows of a table, without its head."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def seconds(runs: Series) -> str:
    """Return the median of the warm runs, and their range."""
    low, high = runs.range("wall_seconds")
    return f"{runs.median('wall_seconds'):.2f} ({low:.2f}–{high:.2f})"


def cold_seconds(ours: Series, theirs: Series) -> str:
    """Return the first runs of both sides; nothing when they were not measured."""
    if ours.cold is None or theirs.cold is None:
        return ""
    return f"{ours.cold.wall_seconds:.2f} against {theirs.cold.wall_seconds:.2f}"


def first_run(ours: Series, runs: Series) -> tuple[str, str]:
    """Return the first run of a side, and how many times as long as ours it took; nothing where it was not measured."""
    if ours.cold is None or runs.cold is None:
        return "", ""
    return f"{runs.cold.wall_seconds:.2f}", f"**{runs.cold.wall_seconds / ours.cold.wall_seconds:.2f}**"


def per_second(records: float) -> str:
    """Return millions of records."""
    return f"{records / 1e6:.2f}"


def mib(size_bytes: float) -> str:
    """Return a size in MiB."""
    return f"{size_bytes / _MIB:.0f}"


def peak_mib(runs: Series) -> str:
    """Return the most memory that all processes of a side held, Java and Python, in MiB."""
    return mib(runs.peak("python_bytes") + runs.peak("jvm_bytes"))
