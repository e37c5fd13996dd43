"""Bound a hop's counts: within tolerance, conserved, and equal to the keyed frame's."""

from makewhole.gate.frame import FrameCounts
from makewhole.gate.planned_expectation import HIGHEST, Number, Role, difference, keys, text
from makewhole.gate.summary import HopSummary
from makewhole.model.gate import Gate
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import Verdict


def verdict_numbers(pipeline: Pipeline, summary: HopSummary) -> list[Number]:
    """Return the bounds of each verdict by the gate's tolerance, and the number of keys that were judged."""
    gate = pipeline.gate
    counts, pending = summary.counts, summary.counts.pending
    tolerance = {
        "missing": gate.missing,
        "duplicate": gate.duplicate,
        "mismatched": gate.mismatched,
        "unexpected": gate.unexpected,
        "conflict": gate.conflict,
        "undecidable": 0,
    }
    judged = [
        Number(
            name=verdict,
            value=_unaccepted(summary, verdict),
            at_most=allowed,
            sentence=_counted_sentence(summary, verdict, allowed),
            role=Role.FINDING,
        )
        for verdict, allowed in tolerance.items()
    ]
    judged += _tolerated_pending(gate, pending)
    judged += _tolerated_vanished(pipeline, summary)
    may_be_empty = gate.allow_empty and not pending
    return [
        *judged,
        _bounded("matched", counts.matched, summary.expected_rows),
        _bounded("pending", pending, summary.expected_rows),
        _bounded("vanished", counts.vanished, summary.expected_rows),
        _bounded("erased", counts.erased, summary.expected_rows),
        _bounded("before_baseline", counts.before_baseline, summary.expected_rows),
        Number(
            name="judged",
            value=counts.judged,
            at_least=0 if may_be_empty else 1,
            at_most=HIGHEST,
            sentence=f"nothing was judged: {keys(pending)} pending, {text(counts.undecidable)} undecidable"
            + (f", {text(counts.before_baseline)} before the baseline" if counts.before_baseline else ""),
            role=Role.FINDING,
        ),
    ]


def _unaccepted(summary: HopSummary, verdict: str) -> int:
    """Return how many keys with a verdict are not accepted; below zero, and broken evidence, where more are accepted
    than there are."""
    counted: int = getattr(summary.counts, verdict)
    return counted - summary.accepted.get(verdict, 0)


def _counted_sentence(summary: HopSummary, verdict: str, allowed: int) -> str:
    accepted = summary.accepted.get(verdict, 0)
    beside = f" beside {accepted:,} accepted" if accepted else ""
    return f"{keys(_unaccepted(summary, verdict))} {verdict}{beside}, {allowed:,} allowed"


def _tolerated_pending(gate: Gate, pending: int) -> list[Number]:
    """Return the bound of the keys that may be handed over, where the gate has one."""
    if gate.pending is None:
        return []
    return [
        Number(
            name="pending_tolerated",
            value=pending,
            at_most=gate.pending,
            sentence=f"{keys(pending)} pending, {gate.pending:,} allowed",
            role=Role.FINDING,
        )
    ]


def _tolerated_vanished(pipeline: Pipeline, summary: HopSummary) -> list[Number]:
    """Return the bound of the keys that may have vanished: none where they are to be brought back."""
    allowed = 0 if is_brought_back(pipeline, summary.hop) else pipeline.gate.vanished
    if allowed is None:
        return []
    return [
        Number(
            name="vanished_tolerated",
            value=_unaccepted(summary, "vanished"),
            at_most=allowed,
            sentence=_counted_sentence(summary, "vanished", allowed),
            role=Role.FINDING,
        )
    ]


def is_brought_back(pipeline: Pipeline, name: str) -> bool:
    """Return whether the pipeline file asks for keys that have vanished on this hop to be brought back."""
    return any(hop.name == name and hop.remedies.vanished is not Remedy.REPORT for hop in pipeline.hops)


def _bounded(name: str, value: int, most: int | None) -> Number:
    return Number(
        name=name,
        value=value,
        at_most=max(most or 0, 0),
        sentence=f"{keys(value)} {name}, but the snapshots hold only {text(most)}",
    )


def identity_numbers(summary: HopSummary) -> list[Number]:
    """Return the numbers that are conserved: every key that the snapshots hold has exactly one verdict."""
    return [
        *_source_key_numbers(summary),
        *_without_source_numbers(summary),
        *_key_numbers(summary),
        _handover_number(summary),
        *_row_numbers(summary),
    ]


def _source_key_numbers(summary: HopSummary) -> list[Number]:
    counts = summary.counts
    with_source = counts.duplicate - summary.duplicates_without_source
    undecidable = counts.undecidable - summary.undecidable_without_source
    before = counts.before_baseline - summary.before_baseline_without_source
    differing = counts.missing + counts.mismatched + counts.conflict - summary.differing_without_source
    known = counts.matched + differing + with_source
    known += counts.vanished + counts.erased + summary.unexpected_with_source
    accounted = known + (counts.pending - summary.pending_without_source) + undecidable + before
    return [
        Number(
            name="source_keys",
            value=counts.source_keys,
            at_most=max(counts.source_rows + summary.handed_over, 0),
            sentence=f"{keys(counts.source_keys)} at the source in only {text(counts.source_rows)} rows "
            f"and {text(summary.handed_over)} handed over",
        ),
        Number(
            name="source_keys_without_verdict",
            value=counts.source_keys - accounted,
            at_most=0,
            sentence=f"{keys(counts.source_keys)} at the source, but {text(accounted)} of them have a verdict",
        ),
    ]


def _without_source_numbers(summary: HopSummary) -> list[Number]:
    counts = summary.counts
    return [
        Number(
            name="duplicates_without_source",
            value=summary.duplicates_without_source,
            at_most=max(counts.duplicate, 0),
            sentence=f"{text(summary.duplicates_without_source)} of {keys(counts.duplicate)} duplicate lack a source",
        ),
        Number(
            name="undecidable_without_source",
            value=summary.undecidable_without_source,
            at_most=max(counts.undecidable, 0),
            sentence=f"{text(summary.undecidable_without_source)} of {keys(counts.undecidable)} undecidable lack a "
            "source",
        ),
        Number(
            name="before_baseline_without_source",
            value=summary.before_baseline_without_source,
            at_most=max(counts.before_baseline, 0),
            sentence=f"{text(summary.before_baseline_without_source)} of {keys(counts.before_baseline)} before the "
            "baseline lack a source",
        ),
        Number(
            name="differing_without_source",
            value=summary.differing_without_source,
            at_most=max(counts.missing + counts.mismatched + counts.conflict, 0),
            sentence=f"{text(summary.differing_without_source)} of "
            f"{keys(counts.missing + counts.mismatched + counts.conflict)} that are missing or differ lack a source",
        ),
        Number(
            name="pending_without_source",
            value=summary.pending_without_source,
            at_most=max(counts.pending, 0),
            sentence=f"{text(summary.pending_without_source)} of {keys(counts.pending)} pending lack a source",
        ),
        Number(
            name="unexpected_with_source",
            value=summary.unexpected_with_source,
            at_most=max(counts.unexpected, 0),
            sentence=f"{text(summary.unexpected_with_source)} of {keys(counts.unexpected)} unexpected have a source",
        ),
        Number(
            name="handed_over",
            value=summary.handed_over,
            at_most=max(counts.source_keys, 0),
            sentence=f"{keys(summary.handed_over)} handed over, only {text(counts.source_keys)} at the source",
        ),
    ]


def _key_numbers(summary: HopSummary) -> list[Number]:
    counts = summary.counts
    in_counts = counts.judged + counts.pending + counts.undecidable + counts.before_baseline
    return [
        Number(
            name="expected_rows",
            value=summary.expected_rows,
            at_most=HIGHEST,
            sentence=f"the snapshots hold {text(summary.expected_rows)} keys",
        ),
        Number(
            name="keys_without_verdict",
            value=difference(summary.expected_rows, in_counts),
            at_most=0,
            sentence=f"{keys(in_counts)} in the counts, the snapshots hold {text(summary.expected_rows)}",
        ),
    ]


def _handover_number(summary: HopSummary) -> Number:
    """Return the number of keys handed over to the next window, which judges no other pending key."""
    pending = max(summary.counts.pending, 0)
    return Number(
        name="handovers_written",
        value=summary.handovers_written,
        at_least=pending,
        at_most=pending,
        sentence=f"{keys(summary.counts.pending)} pending, {text(summary.handovers_written)} in the journal as handed "
        "over: the next window judges only these. Run the window again for a new revision",
    )


def _row_numbers(summary: HopSummary) -> list[Number]:
    counts = summary.counts
    sentences = {
        "source_rows": f"{text(counts.source_rows)} rows at the source",
        "target_rows": f"{text(counts.target_rows)} rows at the target",
        "extra_copies": f"{text(counts.extra_copies)} extra copies",
    }
    return [
        Number(name=name, value=getattr(counts, name), at_most=HIGHEST, sentence=sentence)
        for name, sentence in sentences.items()
    ]


def agreement_numbers(summary: HopSummary, frame: FrameCounts) -> list[Number]:
    """Return the differences between a hop's counts and those of the stored verdicts and buckets."""
    rows = frame.rows(summary.hop) + summary.clean
    numbers = [
        Number(
            name="frame_rows_beyond_expected",
            value=difference(rows, summary.expected_rows),
            at_most=0,
            sentence=f"{text(rows)} keys were judged, the snapshots hold {text(summary.expected_rows)}",
        ),
        *_bucket_numbers(summary, frame),
    ]
    for verdict in Verdict:
        counted, stored = getattr(summary.counts, verdict.value), frame.of(summary.hop, verdict)
        stored += summary.clean if verdict is Verdict.MATCHED else 0
        numbers.append(
            Number(
                name=f"frame_{verdict.value}_beyond_counts",
                value=difference(stored, counted),
                at_most=0,
                sentence=f"{keys(stored)} {verdict.value} among the verdicts, {text(counted)} in the counts",
            )
        )
    unexplained = frame.unexplained(summary.hop)
    numbers.append(
        Number(
            name="findings_without_cause",
            value=unexplained,
            at_most=0,
            sentence=f"{keys(unexplained)} not matched and without a cause",
            role=Role.NOTE,
        )
    )
    return numbers


def _bucket_numbers(summary: HopSummary, frame: FrameCounts) -> list[Number]:
    """Return the numbers that hold each bucket to its keys."""
    clean, expected = frame.clean(summary.hop), frame.expected(summary.hop)
    unequal = frame.unequal_buckets(summary.hop)
    return [
        Number(
            name="clean",
            value=difference(clean, summary.clean),
            at_most=0,
            sentence=f"{keys(clean)} clean in the buckets, {text(summary.clean)} in the counts",
        ),
        Number(
            name="buckets_beyond_expected",
            value=difference(expected, summary.expected_rows),
            at_most=0,
            sentence=f"the buckets hold {text(expected)} keys, the snapshots {text(summary.expected_rows)}",
        ),
        Number(
            name="buckets_unequal",
            value=unequal,
            at_most=0,
            sentence=f"{text(unequal)} buckets have another number of verdicts than of keys",
        ),
    ]
