"""Small plots of block characters."""

from collections.abc import Sequence

from makewhole.audit.text import duration, moment, number

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = 8
_HEIGHT = 4
_OUTSIDE_SHARE = 0.0005
_MARGIN = 12

Buckets = Sequence[tuple[int, int]]


def bars(counts: Sequence[int]) -> str:
    """One line of blocks; anything above nothing shows."""
    most = max(counts, default=0)
    return "".join(_BLOCKS[0 if not one else max(1, round(_EIGHTHS * one / most))] for one in counts)


def rate_plot(buckets: Buckets, width_ms: int, columns: int) -> list[str]:
    """Records over time as lines of text; the few that stand far outside the rest are left out and said so."""
    inner, left_out = _without_outliers(buckets)
    if not inner:
        return []
    first, last = inner[0][0], inner[-1][0] + width_ms
    slots = max(1, min(columns - _MARGIN, (last - first) // width_ms))
    step_ms = -(-(last - first) // (slots * width_ms)) * width_ms
    slots = -(-(last - first) // step_ms)
    counts = [0] * slots
    for start, records in inner:
        counts[(start - first) // step_ms] += records
    most = max(counts)
    lines = [f"{_label(row, most):>{_MARGIN - 2}} {line}" for row, line in enumerate(_rows(counts, most))]
    end = moment(last)
    lines.append(f"{'':{_MARGIN - 2}} {moment(first)}{end:>{max(slots - len(moment(first)), len(end) + 2)}}")
    lines.append(f"{'':{_MARGIN - 2}} a column is {duration(step_ms)}, UTC, by the batches' newest timestamp")
    if left_out:
        lines.append(f"{'':{_MARGIN - 2}} {number(left_out)} records with timestamps far outside are not drawn")
    return lines


def _rows(counts: Sequence[int], most: int) -> list[str]:
    """From the top row to the bottom one."""
    heights = [0 if not one else max(1, round(_HEIGHT * _EIGHTHS * one / most)) for one in counts]
    return [
        "".join(_BLOCKS[min(max(height - _EIGHTHS * row, 0), _EIGHTHS)] for height in heights)
        for row in reversed(range(_HEIGHT))
    ]


def _label(row: int, most: int) -> str:
    if row == 0:
        return number(most)
    return "0" if row == _HEIGHT - 1 else ""


def _without_outliers(buckets: Buckets) -> tuple[list[tuple[int, int]], int]:
    """Without the first and the last few records in thousands, if time is much longer for them than for the rest."""
    total = sum(records for _, records in buckets)
    lo, hi, allowed = 0, len(buckets), int(total * _OUTSIDE_SHARE)
    cut = 0
    while hi - lo > 1:
        ends = [(buckets[lo][1], lo + 1, hi), (buckets[hi - 1][1], lo, hi - 1)]
        lost, new_lo, new_hi = min(ends)
        if cut + lost > allowed:
            break
        cut, lo, hi = cut + lost, new_lo, new_hi
    span, inner = (one[-1][0] - one[0][0] if one else 0 for one in (buckets, buckets[lo:hi]))
    return (list(buckets[lo:hi]), cut) if span > 3 * inner else (list(buckets), 0)
