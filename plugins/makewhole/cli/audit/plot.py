"""Draw small plots of block characters."""

from collections.abc import Sequence

from makewhole.model.text import duration, moment, number

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = 8
_HEIGHT = 4
_OUTSIDE_SHARE = 0.0005

Buckets = Sequence[tuple[int, int]]


def bars(counts: Sequence[int]) -> str:
    """Return one line of blocks; any count above zero is visible."""
    most = max(counts, default=0)
    return "".join(_BLOCKS[0 if not count else max(1, round(_EIGHTHS * count / most))] for count in counts)


def rate_plot(buckets: Buckets, width_ms: int, columns: int) -> list[str]:
    """Draw records over time as lines of text; outliers are left out, and a note says how many."""
    inner, left_out = _without_outliers(buckets)
    if not inner:
        return []
    total = sum(records for _, records in inner)
    margin = len(number(total)) + 1  # no bar is higher
    first, last = inner[0][0], inner[-1][0] + width_ms
    slots = max(1, min(columns - margin, (last - first) // width_ms))
    step_ms = -(-(last - first) // (slots * width_ms)) * width_ms
    counts = [0] * -(-(last - first) // step_ms)
    for start, records in inner:
        counts[(start - first) // step_ms] += records
    lines = [f"{_label(row, max(counts)):>{margin - 1}} {line}" for row, line in enumerate(_rows(counts))]
    notes = [_axis(first, last, len(counts))]
    notes.append(f"a column is {duration(step_ms)}, UTC, by the batches' newest timestamp")
    if left_out:
        notes.append(f"{number(left_out)} records with timestamps far outside are not drawn")
    return [*lines, *(" " * margin + note for note in notes)]


def _axis(first_ms: int, last_ms: int, slots: int) -> str:
    start, end = moment(first_ms), moment(last_ms)
    return f"{start}{end:>{max(slots - len(start), len(end) + 2)}}"


def _rows(counts: Sequence[int]) -> list[str]:
    """Return the rows of the plot, from the top to the bottom."""
    most = max(counts)
    heights = [0 if not count else max(1, round(_HEIGHT * _EIGHTHS * count / most)) for count in counts]
    return [
        "".join(_BLOCKS[min(max(height - _EIGHTHS * row, 0), _EIGHTHS)] for height in heights)
        for row in reversed(range(_HEIGHT))
    ]


def _label(row: int, most: int) -> str:
    if row == 0:
        return number(most)
    return "0" if row == _HEIGHT - 1 else ""


def _without_outliers(buckets: Buckets) -> tuple[list[tuple[int, int]], int]:
    """Leave out the first and the last few records in thousands, if they take up most of the time span."""
    total = sum(records for _, records in buckets)
    lo, hi, allowed = 0, len(buckets), int(total * _OUTSIDE_SHARE)
    cut = 0
    while hi - lo > 1:
        ends = [(buckets[lo][1], lo + 1, hi), (buckets[hi - 1][1], lo, hi - 1)]
        lost, new_lo, new_hi = min(ends)
        if cut + lost > allowed:
            break
        cut, lo, hi = cut + lost, new_lo, new_hi
    span, inner = (part[-1][0] - part[0][0] if part else 0 for part in (buckets, buckets[lo:hi]))
    return (list(buckets[lo:hi]), cut) if span > 3 * inner else (list(buckets), 0)
