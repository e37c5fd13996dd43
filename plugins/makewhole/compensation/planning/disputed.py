"""Tell which values are not carried on: those that another hop, or an open finding of another window, calls wrong."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from makewhole.model.pipeline import Hop, Pipeline, Semantics
from makewhole.model.verdict import DISPUTING, Cause, Finding, Verdict
from makewhole.model.window import PartitionRange


@dataclass(frozen=True, kw_only=True)
class OpenElsewhere:
    """The open findings of other windows of some keys, each with its window's number, and the offset ranges of this
    window, by topic point. `accepted`: hop and key hash of the findings that a person has accepted there."""

    findings: Sequence[tuple[int, Finding]] = ()
    accepted: frozenset[tuple[str, str]] = frozenset()
    ranges: Mapping[str, Sequence[PartitionRange]] = field(default_factory=dict)


NOTHING_ELSEWHERE = OpenElsewhere()


@dataclass(frozen=True, kw_only=True)
class _Dispute:
    """A finding that disputes a point's value of a key. `window` None: it is of the window that is planned for."""

    finding: Finding
    point: str
    window: int | None = None

    @property
    def is_not_known(self) -> bool:
        """Whether it says that nobody knows what is there."""
        return self.finding.verdict is Verdict.UNDECIDABLE

    @property
    def says_nothing_of_values(self) -> bool:
        """Whether another window only could not know if the key was there, and a repair has its record now."""
        return self.is_not_known and self.window is not None and not self.finding.evidence.get("target_copies")

    def reason(self, hop: Hop) -> str:
        finding, of_window = self.finding, "" if self.window is None else f" in window {self.window}"
        return (
            f"disputed: {finding.hop} calls this key {finding.verdict.value} ({finding.cause.value}){of_window}, and "
            f"what {hop.source} has of it is not carried on to {hop.target}; settle that finding first (`makewhole "
            "explain` shows what each point holds), then run this window again"
        )


class DisputedValues:
    """The values that findings dispute, of some keys, by the point that holds them.

    What comes from a disputed value is disputed, too: at every point behind it.
    """

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding], elsewhere: OpenElsewhere) -> None:
        """`findings`: all of their keys."""
        self._pipeline, self._ranges = pipeline, elsewhere.ranges
        self._hops = {hop.name: hop for hop in pipeline.hops}
        self._found: dict[tuple[str, str], list[_Dispute]] = defaultdict(list)
        for finding in findings:
            self._add(finding, None)
        for number, finding in elsewhere.findings:
            self._add(finding, number)

    def _add(self, finding: Finding, window: int | None) -> None:
        for point in self._disputed_points(finding):
            dispute = _Dispute(finding=finding, point=point, window=window)
            for behind in self._pipeline.from_here_on(point):
                self._found[self._pipeline.place_of(behind), finding.key_hash].append(dispute)

    def _disputed_points(self, finding: Finding) -> Iterator[str]:
        hop = self._hops.get(finding.hop)
        if hop is None or finding.verdict not in DISPUTING:
            return
        yield hop.target
        if finding.cause is Cause.SOURCE_CONTRADICTS:
            yield hop.source

    def reason(self, hop: Hop, finding: Finding, origin: tuple[int, int] | None) -> str | None:
        """Return why the finding of a hop is not answered; None: nothing disputes what a remedy goes by. `origin`:
        (partition, offset) of the record that counts.

        An unexpected row goes by nothing that its source has. It stays only while it is not known what is there.
        """
        is_unexpected = finding.verdict is Verdict.UNEXPECTED
        place = self._pipeline.place_of(hop.source)
        for dispute in self._found.get((place, finding.key_hash), ()):
            is_own = dispute.window is None and dispute.finding.hop == finding.hop
            counts = dispute.is_not_known if is_unexpected else not dispute.says_nothing_of_values
            if counts and not is_own and not self._is_superseded(dispute, hop, origin):
                return dispute.reason(hop)
        return None

    def _is_superseded(self, dispute: _Dispute, hop: Hop, origin: tuple[int, int] | None) -> bool:
        """Tell whether a finding of another window is of an older version: the one that counts lies in this window,
        which compared it with its source and disputes it not."""
        if dispute.window is None or dispute.point != hop.source or origin is None:
            return False
        disputing = self._hops[dispute.finding.hop]
        parts = self._ranges.get(hop.source, ())
        is_here = any(part.partition == origin[0] and part.lo <= origin[1] < part.hi for part in parts)
        return is_here and disputing.target == hop.source and disputing.semantics is Semantics.UPSERT
