"""Find the rows that stay as they are, whatever another finding of their key asks for: by a person's word, or because
they were deleted."""

from collections.abc import Iterable

from makewhole.model.actions import Action
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.refusal import Refusal, RefusalCode, refusal_by_acceptance
from makewhole.model.verdict import Finding, Verdict


class AcceptedRows:
    """The rows of accepted findings, and the rows that such findings lack."""

    def __init__(self, pipeline: Pipeline, accepted: Iterable[tuple[str, str]]) -> None:
        """`accepted`: hop and key hash of the findings of all windows that a person has accepted."""
        self._pipeline, self._accepted = pipeline, frozenset(accepted)
        self._hops: dict[tuple[str, Remedy], tuple[str, ...]] = {}

    def refusal(self, hop: Hop, action: Action) -> Refusal | None:
        """Return why an action of a hop is not done that would change the rows of an accepted finding, or bring those
        that it lacks; or None."""
        kept = (name for name in self.hops(hop, action) if (name, action.key_hash) in self._accepted)
        return next(map(refusal_by_acceptance, kept), None)

    def hops(self, hop: Hop, action: Action) -> tuple[str, ...]:
        """Return the hops into the tables whose rows an action of a hop would change or add: by itself, or by a loader
        that reads what it sends. They may be accepted after the plan was made (`Before.accepted_by`)."""
        asked = hop.name, action.remedy
        if asked not in self._hops:
            places = self._pipeline.places_written(hop, action.remedy)
            into = (other for other in self._pipeline.hops if self._pipeline.place_of(other.target) in places)
            self._hops[asked] = tuple(other.name for other in into)
        return self._hops[asked]


class DeletedRows:
    """The rows that certified windows have seen in tables, that are gone, and that no remedy brings back."""

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding]) -> None:
        """`findings`: all of their keys."""
        self._pipeline = pipeline
        hops = {hop.name: hop for hop in pipeline.hops}
        self._gone: dict[tuple[str, str], Hop] = {}
        asked_back: set[tuple[str, str]] = set()
        for finding in findings:
            hop = hops.get(finding.hop)
            if hop is None or finding.verdict is not Verdict.VANISHED:
                continue
            row = pipeline.place_of(hop.target), finding.key_hash
            self._gone.setdefault(row, hop)
            if hop.remedies.vanished is not Remedy.REPORT:
                asked_back.add(row)
        self._gone = {row: hop for row, hop in self._gone.items() if row not in asked_back}

    def refusal(self, hop: Hop, action: Action) -> Refusal | None:
        """Return why an action of a hop is not done that would bring a row back, or None."""
        if not self._gone:
            return None
        places = sorted(self._pipeline.places_written(hop, action.remedy))
        back = (self._gone[place, action.key_hash] for place in places if (place, action.key_hash) in self._gone)
        return next(map(_why_it_stays_away, back), None)


def _why_it_stays_away(hop: Hop) -> Refusal:
    return Refusal(
        RefusalCode.TWICE,
        f"{hop.target} had this key and has lost it since it was proven ({hop.name} calls it vanished): it would get "
        f"back what was deleted there; write `vanished: upsert` or `vanished: redeliver` on hop {hop.name} if it is to "
        "come back, or repair what else lacks the key by `upsert`, or by a replay topic",
    )
