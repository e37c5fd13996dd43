"""Find which values are not carried on: those that another hop, or an open finding of another window, calls wrong."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from makewhole.model.actions import DisputedBy
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.refusal import Refusal, refusal_by_dispute
from makewhole.model.verdict import DISPUTING, Cause, Finding, Verdict, says_nothing_of_values
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
        """Whether it says that what is there is not known."""
        return self.finding.verdict is Verdict.UNDECIDABLE

    @property
    def says_nothing_of_values(self) -> bool:
        """Whether another window only could not know if the key was there, and a repair has its record now."""
        return self.window is not None and says_nothing_of_values(self.finding)

    def refusal(self, hop: Hop) -> Refusal:
        return refusal_by_dispute(self.finding, self.window, (hop.source, hop.target))


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

    def refusal(self, hop: Hop, finding: Finding, origin: tuple[int, int] | None) -> Refusal | None:
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
                return dispute.refusal(hop)
        return None

    def disputing_hops(self, hop: Hop, finding: Finding, origin: tuple[int, int] | None) -> DisputedBy | None:
        """Return the hops whose findings in other windows would dispute what `refusal` was asked about: they may come
        after the plan was made (`Before.disputed_by`)."""
        place = self._pipeline.place_of(hop.source)
        ends = [end.name for end in self._pipeline.hops if self._leads_to(end.target, place)]
        if self._is_here(hop, origin):
            ends = [name for name in ends if not self._compares_versions(name, hop)]
        starts = [start.name for start in self._pipeline.hops if self._leads_to(start.source, place)]
        if not ends and not starts:
            return None
        return DisputedBy(ends=tuple(ends), starts=tuple(starts), doubts=finding.verdict is Verdict.UNEXPECTED)

    def _leads_to(self, point: str, place: str) -> bool:
        return any(self._pipeline.place_of(behind) == place for behind in self._pipeline.from_here_on(point))

    def _is_superseded(self, dispute: _Dispute, hop: Hop, origin: tuple[int, int] | None) -> bool:
        """Return whether a finding of another window is of an older version: the one that counts lies in this window,
        which compared it with its source and disputes it not."""
        if dispute.window is None or dispute.point != hop.source:
            return False
        return self._is_here(hop, origin) and self._compares_versions(dispute.finding.hop, hop)

    def _is_here(self, hop: Hop, origin: tuple[int, int] | None) -> bool:
        """Return whether the record that counts lies in this window."""
        parts = () if origin is None else self._ranges.get(hop.source, ())
        return origin is not None and any(
            part.partition == origin[0] and part.lo <= origin[1] < part.hi for part in parts
        )

    def _compares_versions(self, disputing: str, hop: Hop) -> bool:
        """Return whether another hop compares the versions that stand where this one starts."""
        other = self._hops[disputing]
        return other.target == hop.source and other.semantics is Semantics.UPSERT
