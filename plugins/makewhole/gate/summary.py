"""Carry a hop's numbers to the gate: the counts to be judged, and evidence that was not counted from them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from makewhole.model.verdict import HopCounts
from makewhole.model.window import Accounting


@dataclass(frozen=True, kw_only=True)
class PointEvidence:
    """The numbers of a hop's source or target, from its snapshot and its system; None means not known.

    `has_manifest`: a committed manifest names the snapshot. `rows_read`: rows in the snapshot's files. `rows_counted`
    (tables only): the rows that the database itself says it sent.
    `accounting` (topics only): what every offset of the window's ranges was. `undecodable` (tables): rows with no key.
    `undecodable_because`: the most frequent reason of such records or rows.
    """

    point: str
    has_manifest: bool
    rows_read: int | None
    rows_counted: int | None = None
    accounting: Accounting | None = None
    undecodable: int = 0
    undecodable_because: str | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether the window has nothing of the point: no row, and of a log no record of any kind."""
        logged = self.accounting
        return self.rows_read == 0 and not self.undecodable and (logged is None or logged.span == logged.control)


@dataclass(frozen=True, kw_only=True)
class HopSummary:
    """The numbers of one hop in one window.

    `expected_rows` is how many keys must have a verdict: the distinct keys of the source that pass the hop's filter, as
    the snapshot pass counted them (never counted from the verdicts), with those handed over by an earlier window, plus
    the keys that only the target gives rise to. `duplicates_without_source` are the keys in `counts.duplicate` that the
    source does not have in this window, `undecidable_without_source` those of `counts.undecidable`,
    `before_baseline_without_source` those of `counts.before_baseline`, `differing_without_source` those of
    `counts.missing`, `counts.mismatched` and `counts.conflict`, whose record an earlier window has,
    `pending_without_source` those of `counts.pending`; `unexpected_with_source` the keys in `counts.unexpected` of
    which the source has versions in this window, the latest of which does not pass the hop's filter. `handed_over` are
    the keys that an earlier window left to this one, or that are judged again because a truncation took their records.
    `handovers_written`: the keys that this window leaves to the next one, as the journal counts the rows it was given,
    never copied from `counts.pending`; None: not known. `clean`: the keys that are matched and have no row of their own
    among the verdicts. `unnumbered`: the records without the sequence that is the key of a topic alone, whose summary
    has it as both points and no verdicts. `accepted`: how many of the keys in `counts` a person has accepted, by
    verdict.
    """

    hop: str
    counts: HopCounts
    expected_rows: int | None
    source: PointEvidence
    target: PointEvidence
    duplicates_without_source: int = 0
    handed_over: int = 0
    undecidable_without_source: int = 0
    before_baseline_without_source: int = 0
    differing_without_source: int = 0
    pending_without_source: int = 0
    unexpected_with_source: int = 0
    handovers_written: int | None = None
    clean: int = 0
    unnumbered: int = 0
    accepted: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Return whether both points have nothing in the window, and no key was judged or waits."""
        return self.source.is_empty and self.target.is_empty and self.expected_rows == 0 and self.counts == HopCounts()

    def to_json_dict(self) -> dict[str, Any]:
        """Return the summary as JSON types; `from_json_dict` reads the same summary back."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("accepted", "unnumbered")}

    @classmethod
    def from_json_dict(cls, document: Mapping[str, Any]) -> "HopSummary":
        """Read a summary from JSON types.

        Raises:
            TypeError: a field is missing or not known; a summary is never completed by guessing.
        """
        fields = dict(document)
        fields["counts"] = HopCounts(**fields["counts"])
        fields["source"] = _point_evidence(fields["source"])
        fields["target"] = _point_evidence(fields["target"])
        return cls(**fields)


def _point_evidence(document: Mapping[str, Any]) -> PointEvidence:
    fields = dict(document)
    if fields.get("accounting") is not None:
        fields["accounting"] = Accounting(**fields["accounting"])
    return PointEvidence(**fields)
