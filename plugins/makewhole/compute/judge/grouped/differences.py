"""Explain why a row does not hold what its records add up to, and show both: key by key, of findings alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, HASHES
from makewhole.compute.judge.grouped.elements import (
    IDENTITY,
    Totals,
    elements_of,
    numbers_of,
    passing_records,
    with_amounts,
    with_found,
)
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.model.verdict import Cause, Verdict

_SHOWN = 10
_NOT_COMPARED = (Verdict.UNEXPECTED.value, Verdict.MISSING.value)
Amounts = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class _CountedRecord:
    """An element: the numbers that it adds, and the places of its committed copies in their order."""

    adds: Amounts
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _KeyTotals:
    """A key: its elements, what its row holds (None: it has no row), and what records of aborted transactions add."""

    elements: tuple[_CountedRecord, ...]
    found: Amounts | None
    aborted: tuple[Amounts, ...]

    @property
    def expected(self) -> Amounts:
        """The numbers that the row must hold; None for a column of which an amount is not known."""
        return _added([element.adds for element in self.elements])


def causes_of_differences(bucket: BucketInput, totals: Totals, wrong: pl.DataFrame) -> dict[str, Cause]:
    """Return why the rows of mismatched keys (with hashes and `key_hash`) differ, by key hash, where one mistake
    explains it."""
    groups = _groups(bucket, totals, wrong)
    causes = ((row["key_hash"], _mistake(groups[row["key_hi"], row["key_lo"]])) for row in wrong.iter_rows(named=True))
    return {key: cause for key, (cause, _) in causes if cause is not None}


def evidence_of_groups(bucket: BucketInput, totals: Totals, judged: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return by key hash what the findings of judged keys (`JUDGED`) show: what their rows count and add up, and what
    they hold. `bucket`: the input of the kernel that judged them."""
    named = [verdict.value for verdict in Verdict if verdict.is_finding]
    wanted = judged.filter(pl.col("verdict").is_in(named) & pl.col("in_source"))
    groups = _groups(bucket, totals, wanted)
    elsewhere = _places_elsewhere(bucket.source_elsewhere, wanted)
    return {
        row["key_hash"]: _evidence(row, groups[at], totals) | elsewhere.get(at, {})
        for row in wanted.iter_rows(named=True)
        for at in [(row["key_hi"], row["key_lo"])]
    }


def _groups(bucket: BucketInput, totals: Totals, keys: pl.DataFrame) -> dict[tuple[int, int], _KeyTotals]:
    wanted = keys.select(HASH).unique()
    if wanted.is_empty():
        return {}
    source = bucket.source.join(wanted, on=HASH, how="semi")
    records = with_amounts(passing_records(source, bucket.hop), totals)
    is_aborted = pl.col("is_aborted") & ~pl.col("excluded_by").list.contains(bucket.hop).fill_null(False)
    aborted = elements_of(with_amounts(source.filter(is_aborted), totals), totals)
    aborted = aborted.join(records, on=[*HASH, IDENTITY], how="anti")
    rows = (
        with_found(bucket.target.join(wanted, on=HASH, how="semi"), totals)
        .sort("place")
        .unique(HASH, keep="first", maintain_order=True)
    )
    of_aborted, elements = _by_key(aborted), _by_key(elements_of(records, totals))
    places = {
        tuple(key): tuple(place_list)
        for *key, place_list in records.sort("partition", "offset").group_by(*HASH, IDENTITY).agg("place").rows()
    }
    amounts = {(row["key_hi"], row["key_lo"]): numbers_of(row, totals.names) for row in rows.iter_rows(named=True)}
    return {
        at: _KeyTotals(
            elements=tuple(
                _CountedRecord(adds=numbers_of(row, totals.names), places=places[*at, row[IDENTITY]])
                for row in elements.get(at, ())
            ),
            found=amounts.get(at),
            aborted=tuple(numbers_of(row, totals.names) for row in of_aborted.get(at, ())),
        )
        for at in wanted.rows()
    }


def _by_key(elements: pl.DataFrame) -> dict[tuple[int, int], list[dict[str, Any]]]:
    grouped: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in elements.iter_rows(named=True):
        grouped.setdefault((row["key_hi"], row["key_lo"]), []).append(row)
    return grouped


def _mistake(group: _KeyTotals) -> tuple[Cause | None, tuple[str, ...]]:
    """Return the one mistake that explains what a row holds, and the places of the records that it may be about: those
    of which each would explain it. Where several kinds of mistakes would, none is named."""
    if group.found is None or None in group.found or None in group.expected:
        return None, ()
    mistakes = dict(_mistakes(group, _less(group.found, group.expected)))
    return next(iter(mistakes.items())) if len(mistakes) == 1 else (None, ())


def _mistakes(group: _KeyTotals, difference: Amounts) -> Iterator[tuple[Cause, tuple[str, ...]]]:
    left_out = [element for element in group.elements if _less(_nothing(difference), element.adds) == difference]
    if left_out:
        yield Cause.RECORD_NOT_COUNTED, tuple(element.places[0] for element in left_out)
    resent = tuple(_counted_again(group.elements, difference))
    if resent:
        yield Cause.RESEND_COUNTED, resent
    if group.aborted and difference in (*group.aborted, _added(group.aborted)):
        yield Cause.READ_UNCOMMITTED, ()


def _counted_again(elements: Sequence[_CountedRecord], difference: Amounts) -> Iterator[str]:
    """Yield the places of copies beyond the first that explain a difference: some of one element's, or all."""
    resent = [element for element in elements if len(element.places) > 1]
    for element in resent:
        for times in range(1, len(element.places)):
            if _times(element.adds, times) == difference:
                yield from element.places[1 : times + 1]
    every = _added([_times(element.adds, len(element.places) - 1) for element in resent])
    if len(resent) > 1 and every == difference:
        yield from (place for element in resent for place in element.places[1:])


def _evidence(row: Mapping[str, Any], group: _KeyTotals, totals: Totals) -> dict[str, Any]:
    expected = dict(zip(totals.names, group.expected or [None] * len(totals.names), strict=True))
    shown = {name: totals.shown(name, number) for name, number in expected.items()}
    evidence: dict[str, Any] = {"group": {"records": len(group.elements), "expected": shown}, "values": shown}
    resent = [place for element in group.elements for place in element.places[1:]]
    if resent:
        evidence["group"]["sent_again"] = resent[:_SHOWN]
    if group.found is not None:
        held = {name: totals.shown(name, number) for name, number in zip(totals.names, group.found, strict=True)}
        evidence["group"]["found"] = held
    if row["verdict"] == Verdict.MISMATCHED.value and group.found is not None:
        pairs = {name: {"source": shown[name], "target": held[name]} for name in totals.names}
        evidence["columns"] = {name: pair for name, pair in pairs.items() if pair["source"] != pair["target"]}
        places = _mistake(group)[1]
        if places:
            evidence["group"]["may_be"] = list(places[:_SHOWN])
    return evidence


def _places_elsewhere(elsewhere: pl.DataFrame, wanted: pl.DataFrame) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the places of records outside the slice, by key, as far as they are known: a run knows the first."""
    copies = elsewhere.join(wanted.select(*HASHES), on=HASH, how="semi", maintain_order="left")
    places = copies.group_by(HASH).agg(
        pl.col("place").filter(~pl.col("is_later").fill_null(False)).head(_SHOWN).alias("records_before"),
        pl.col("place").filter(pl.col("is_later").fill_null(False)).head(_SHOWN).alias("records_after"),
    )
    return {
        (row.pop("key_hi"), row.pop("key_lo")): {name: place_list for name, place_list in row.items() if place_list}
        for row in places.iter_rows(named=True)
    }


def _added(each: Sequence[Amounts]) -> Amounts:
    return tuple(None if None in column else sum(column) for column in zip(*each, strict=True))


def _less(amounts: Amounts, other: Amounts) -> Amounts:
    return tuple(None if a is None or b is None else a - b for a, b in zip(amounts, other, strict=True))


def _times(numbers: Amounts, times: int) -> Amounts:
    return tuple(None if number is None else number * times for number in numbers)


def _nothing(like: Amounts) -> Amounts:
    return (0,) * len(like)
