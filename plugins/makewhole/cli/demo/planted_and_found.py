"""Compare planted and found discrepancies key by key: missed, invented, repaired, still open."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from makewhole.model.self_check.planted import Discrepancy
from makewhole.model.verdict import GAPS, Verdict

_GAPS = frozenset(verdict.value for verdict in GAPS)
_INTO_TOPIC = "outbox→"


@dataclass(frozen=True, kw_only=True)
class Line:
    """The numbers of one kind of discrepancy. `missed`: planted, not found; `invented`: found, not planted."""

    hop: str
    verdict: str
    planted: int
    found: int
    missed: int
    invented: int
    repaired: int
    reported: int
    still_open: int


def planted_ones(rows: Iterable[Mapping[str, Any]]) -> frozenset[Discrepancy]:
    """Return the planted discrepancies from the example's record, rows `{hop, key, verdict, misdeed}`."""
    return frozenset(Discrepancy(hop=row["hop"], verdict=row["verdict"], key=row["key"]) for row in rows)


def found_ones(rows: Iterable[Mapping[str, Any]]) -> frozenset[Discrepancy]:
    """Return the found discrepancies from the findings, rows `{hop: {from, to}, key, verdict, …}`; those that are
    not known yet are none."""
    return frozenset(
        Discrepancy(hop=f"{row['hop']['from']}→{row['hop']['to']}", verdict=row["verdict"], key=row["key"])
        for row in rows
        if row["verdict"] in _GAPS
    )


def lines(
    planted: frozenset[Discrepancy], findings: frozenset[Discrepancy], wrong_now: frozenset[Discrepancy]
) -> list[Line]:
    """Return one line per hop and verdict. `wrong_now` is what the independent proof still sees."""
    kinds = {(discrepancy.hop, discrepancy.verdict) for discrepancy in planted | findings | wrong_now}
    ordered = sorted(kinds, key=lambda kind: (not kind[0].startswith(_INTO_TOPIC), kind))
    return [_line(kind, planted, findings, wrong_now) for kind in ordered]


def _line(
    kind: tuple[str, str],
    planted: frozenset[Discrepancy],
    findings: frozenset[Discrepancy],
    wrong_now: frozenset[Discrepancy],
) -> Line:
    was, seen, is_wrong = (
        {discrepancy.key for discrepancy in ones if (discrepancy.hop, discrepancy.verdict) == kind}
        for ones in (planted, findings, wrong_now)
    )
    # A log cannot be edited: a second copy in a topic is found, judged and reported, and stays.
    stays = kind[0].startswith(_INTO_TOPIC) and kind[1] == Verdict.DUPLICATE
    reported = seen if stays else set()
    still_open = is_wrong | (was - seen if stays else set())
    return Line(
        hop=kind[0],
        verdict=kind[1],
        planted=len(was),
        found=len(seen),
        missed=len(was - seen),
        invented=len(seen - was),
        repaired=len(was - still_open - reported),
        reported=len(reported),
        still_open=len(still_open),
    )


def as_table(all_lines: Sequence[Line]) -> Table:
    """Return the lines as a table. Missed and invented have columns only when there are any."""
    is_exact = not any(line.missed or line.invented for line in all_lines)
    columns = ["planted", "found", *([] if is_exact else ["missed", "invented"]), "repaired", "reported", "still open"]
    table = Table(box=None, pad_edge=False, title="Planted and found, compared key by key", title_justify="left")
    table.add_column("hop", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for line in all_lines:
        numbers = [getattr(line, column.replace(" ", "_")) for column in columns]
        table.add_row(line.hop, line.verdict, *(str(number) for number in numbers))
    return table
