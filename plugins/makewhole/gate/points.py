"""Bound the numbers of a hop's two points, or of a topic alone: each was read completely."""

from collections.abc import Iterator
from dataclasses import replace

from makewhole.gate.planned_expectation import HIGHEST, Number, Role, difference, text
from makewhole.gate.summary import HopSummary, PointEvidence
from makewhole.model.gate import Gate
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.text import not_numbered_text
from makewhole.model.verdict import Duplicates
from makewhole.model.window import Accounting


def point_numbers(pipeline: Pipeline, summary: HopSummary) -> list[Number]:
    """Return the numbers of both points, by kind: a table has a count, a topic has offsets."""
    numbers: list[Number] = []
    for side, evidence in (("source", summary.source), ("target", summary.target)):
        matched = summary.counts.matched if side == "target" else 0
        numbers += _snapshot(side, evidence, pipeline.gate, matched)
        point = pipeline.points[evidence.point]
        is_divided = has_log(point) and point.explode is not None
        numbers += _topic(side, evidence, is_divided=is_divided) if has_log(point) else _table(side, evidence)
        numbers.append(_undecodable(side, evidence, pipeline.gate))
    return numbers


def alone_numbers(pipeline: Pipeline, summary: HopSummary) -> Iterator[Number]:
    """Yield the numbers of a topic that no hop joins. Records without the sequence that is its key are not undecodable:
    that they are no second records is not known, which is right where such records are only reported."""
    evidence, point = summary.source, pipeline.topic(summary.hop)
    unnumbered = summary.unnumbered
    numbered = replace(evidence, undecodable=evidence.undecodable - unnumbered)
    if evidence.accounting is not None:
        others = evidence.accounting.undecodable - unnumbered
        numbered = replace(numbered, accounting=replace(evidence.accounting, undecodable=others))
    rows = None if evidence.rows_read is None else evidence.rows_read + unnumbered
    yield from _snapshot("topic", replace(evidence, rows_read=rows), pipeline.gate, 0)
    yield from _topic("topic", evidence, is_divided=point.explode is not None)
    yield _undecodable("topic", numbered, pipeline.gate)
    is_refused = point.duplicates is Duplicates.REFUSED
    yield Number(
        name="topic_without_sequence",
        value=unnumbered,
        at_most=0 if is_refused else HIGHEST,
        sentence=f"{not_numbered_text(point.topic, unnumbered)}, and the file refuses second records",
        role=Role.FINDING if is_refused else Role.NOTE,
    )


def _snapshot(side: str, evidence: PointEvidence, gate: Gate, matched: int) -> list[Number]:
    """Return the snapshot's numbers. A target is not empty when keys were `matched` in it outside the window's rows."""
    point = evidence.point
    return [
        Number(
            name=f"{side}_snapshots",
            value=int(evidence.has_manifest),
            at_least=1,
            at_most=1,
            sentence=f"the snapshot of {point} was never committed; take it before judging anything",
        ),
        Number(
            name=f"{side}_rows_read",
            value=None if evidence.rows_read is None else evidence.rows_read + _erasures(evidence),
            at_least=0 if gate.allow_empty or matched > 0 else 1,
            at_most=HIGHEST,
            sentence=f"{point} is empty in this window, and silence is not proof (gate.allow_empty permits it)",
            role=Role.FINDING,
        ),
    ]


def _erasures(evidence: PointEvidence) -> int:
    """Return the number of tombstones that were read: a topic that has only these was not silent."""
    return 0 if evidence.accounting is None else evidence.accounting.erasures


def _table(side: str, evidence: PointEvidence) -> list[Number]:
    surplus = difference(evidence.rows_read, evidence.rows_counted)
    return [
        Number(
            name=f"{side}_rows_counted",
            value=evidence.rows_counted,
            at_most=HIGHEST,
            sentence=f"the database counts {text(evidence.rows_counted)} rows in {evidence.point}",
        ),
        Number(
            name=f"{side}_rows_beyond_count",
            value=surplus,
            at_most=0,
            sentence=f"{text(evidence.rows_read)} rows of {evidence.point} were read, "
            f"the database counts {text(evidence.rows_counted)}",
        ),
    ]


_PARTS = ("data", "control", "aborted", "compacted", "expired", "undecodable")


def _topic(side: str, evidence: PointEvidence, *, is_divided: bool) -> list[Number]:
    point, accounting = evidence.point, evidence.accounting
    if accounting is None:
        return [_unaccounted(side, point, None)]
    span = accounting.span
    return [
        Number(
            name=f"{side}_offsets",
            value=span,
            at_most=HIGHEST,
            sentence=f"the window holds {text(span)} offsets of {point}",
        ),
        *_offset_parts(side, point, accounting),
        Number(
            name=f"{side}_offsets_never_read",
            value=accounting.expired,
            at_most=0,
            sentence=f"{text(accounting.expired)} offsets of {point} were deleted before they could be read, so the "
            "window is partial: what they held is not known",
            role=Role.FINDING,
        ),
        _unaccounted(side, point, span - accounting.accounted),
        _rows_of_elements(side, evidence, accounting) if is_divided else _rows_of_records(side, evidence, accounting),
    ]


def _rows_of_records(side: str, evidence: PointEvidence, accounting: Accounting) -> Number:
    data = accounting.data
    return Number(
        name=f"{side}_rows_of_offsets",
        value=evidence.rows_read,
        at_least=data,
        at_most=max(data, data + accounting.aborted + accounting.undecodable),
        sentence=f"the snapshot of {evidence.point} has {text(evidence.rows_read)} rows for {text(data)} data records",
    )


def _rows_of_elements(side: str, evidence: PointEvidence, accounting: Accounting) -> Number:
    elements = accounting.elements
    return Number(
        name=f"{side}_rows_of_offsets",
        value=evidence.rows_read,
        at_least=elements,
        at_most=elements,
        sentence=f"the snapshot of {evidence.point} has {text(evidence.rows_read)} rows for {text(elements)} elements "
        f"of its records",
    )


def _offset_parts(side: str, point: str, accounting: Accounting) -> list[Number]:
    most = max(accounting.span, 0)
    return [
        Number(
            name=f"{side}_offsets_{part}",
            value=getattr(accounting, part),
            at_most=most,
            sentence=f"{text(getattr(accounting, part))} offsets of {point} are counted as {part}, {most:,} allowed",
        )
        for part in (*_PARTS, *(("erasures",) if accounting.erasures else ()))
    ]


def _undecodable(side: str, evidence: PointEvidence, gate: Gate) -> Number:
    """Return the number of records without a usable key: what became of those is not known."""
    undecodable = evidence.undecodable if evidence.accounting is None else evidence.accounting.undecodable
    reason = evidence.undecodable_because
    because = "" if reason is None else f" (for the most part: {reason})"
    return Number(
        name=f"{side}_undecodable",
        value=undecodable,
        at_most=gate.undecodable,
        sentence=f"{text(undecodable)} records of {evidence.point} have no usable key, {gate.undecodable:,} allowed"
        f"{because}; they are kept with their places in the snapshot's folder undecodable "
        "(gate.tolerance.undecodable permits some)",
        role=Role.FINDING,
    )


def _unaccounted(side: str, point: str, offsets: int | None) -> Number:
    return Number(
        name=f"{side}_offsets_unaccounted",
        value=offsets,
        at_most=0,
        sentence=f"{text(offsets)} offsets of {point} are not accounted for, 0 allowed: the read was short or repeated",
    )
