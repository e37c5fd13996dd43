"""Add up the records of a key as the hop to a store of sums does, beside what its rows hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from makewhole.compute.frames import HASHES, TOPIC_KEYS
from makewhole.compute.judge.grouped.elements import Totals, elements_of, numbers_of, passing_records, with_amounts
from makewhole.journey.copies import JourneyCopy
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import as_compared_on
from makewhole.model.text import counted

_OF_RECORDS = ("place", "partition", "offset", "is_aborted", "is_tombstone", "excluded_by")
Shown = Mapping[str, str | None]
"""Column → number as text; None: not known, or null."""


@dataclass(frozen=True, kw_only=True)
class KeySums:
    """A key on a hop with `group`: how many of its records count (one that was sent again once), what they add up to,
    and what each of its rows holds."""

    hop: str
    records: int
    expected: Shown
    found: tuple[Shown, ...]

    @property
    def text(self) -> str:
        """The two in words."""
        rows = " and ".join(_shown(row, "null") for row in self.found)
        held = f"its {'row has' if len(self.found) == 1 else 'rows have'} {rows}" if rows else "it has no row"
        adds = f"add{'s' if self.records == 1 else ''} up to {_shown(self.expected, 'not known')}"
        return f"{self.hop}: {counted(self.records, 'record')} {adds}; {held}"


def key_sums(
    pipeline: Pipeline, hop: Hop, records: Sequence[JourneyCopy], rows: Sequence[JourneyCopy]
) -> KeySums | None:
    """Return what the records of one key add up to on a hop, as far as snapshots have them; None: the hop has no
    `group`. A sum is None where an amount of it is not known, or two records of one identity differ."""
    if hop.group is None:
        return None
    totals = Totals.of(hop.group, as_compared_on(pipeline, hop).compare)
    passing = passing_records(_frame(records, tuple(hop.group.columns_of_records)), hop.name)
    elements = elements_of(with_amounts(passing, totals), totals).to_dicts()
    numbers = [numbers_of(element, totals.names) for element in elements]
    is_clear = not any(element["contradicts"] or element["identity"] is None for element in elements)
    return KeySums(
        hop=hop.name,
        records=len(elements),
        expected={
            name: totals.shown(name, _added([of_record[at] for of_record in numbers]) if is_clear else None)
            for at, name in enumerate(totals.names)
        },
        found=tuple({name: row.values.get(name) for name in totals.names} for row in rows),
    )


def _frame(records: Sequence[JourneyCopy], columns: Sequence[str]) -> pl.DataFrame:
    of_columns = {f"c:{name}": pl.String for name in columns}
    schema = {**HASHES, **{name: TOPIC_KEYS[name] for name in _OF_RECORDS}, **of_columns}
    rows = [
        {
            **dict.fromkeys(HASHES, 0),
            **{name: copy.identity.get(name) for name in _OF_RECORDS},
            "place": copy.place,
            "excluded_by": None if copy.excluded_by is None else list(copy.excluded_by),
            **{f"c:{name}": copy.values.get(name) for name in columns},
        }
        for copy in records
    ]
    return pl.DataFrame(rows, schema=schema)


def _added(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _shown(values: Shown, without: str) -> str:
    return ", ".join(f"{name}={without if text is None else text}" for name, text in values.items())
