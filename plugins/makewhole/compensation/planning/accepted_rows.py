"""Find the rows that stay as they are by a person's word, whatever another finding of their key asks for."""

from collections.abc import Iterable

from makewhole.model.actions import Action
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.model.refusal import Refusal, refusal_by_acceptance

_TOUCHING = (Remedy.QUARANTINE, Remedy.UPSERT)
_SENDING = (Remedy.PRODUCE, Remedy.REDELIVER)


class AcceptedRows:
    """The rows of accepted findings."""

    def __init__(self, pipeline: Pipeline, accepted: Iterable[tuple[str, str]]) -> None:
        """`accepted`: hop and key hash of the findings of all windows that a person has accepted."""
        self._pipeline, self._accepted = pipeline, frozenset(accepted)
        self._hops: dict[tuple[str, Remedy, str], tuple[str, ...]] = {}

    def refusal(self, hop: Hop, action: Action) -> Refusal | None:
        """Return why an action of a hop is not done that would change the rows of an accepted finding, or None."""
        kept = (name for name in self.hops(hop, action) if (name, action.key_hash) in self._accepted)
        return next(map(refusal_by_acceptance, kept), None)

    def hops(self, hop: Hop, action: Action) -> tuple[str, ...]:
        """Return the hops into the tables whose rows an action of a hop would change: by itself, or by a loader that
        overwrites them with what it sends. They may be accepted after the plan was made (`Before.accepted_by`)."""
        asked = hop.name, action.remedy, action.target
        if asked not in self._hops:
            self._hops[asked] = _hops_changed(self._pipeline, hop, action)
        return self._hops[asked]


def _hops_changed(pipeline: Pipeline, hop: Hop, action: Action) -> tuple[str, ...]:
    if action.remedy in _TOUCHING:
        ends = [action.target]
    elif action.remedy in _SENDING:
        ends = [loaded.target for loaded in _loaded(pipeline, hop, action) if pipeline.overwrites(loaded)]
    else:
        return ()
    places = {pipeline.place_of(name) for name in ends if can_look_up(pipeline.points[name])}
    return tuple(changed.name for changed in pipeline.hops if pipeline.place_of(changed.target) in places)


def _loaded(pipeline: Pipeline, hop: Hop, action: Action) -> Iterable[Hop]:
    """Yield the hops by which a record that is sent goes on, over further topics, too."""
    is_repeated = action.remedy is Remedy.REDELIVER
    for reader in pipeline.redelivery_readers(hop) if is_repeated else pipeline.readers_of(action.target):
        yield reader
        yield from pipeline.hops_behind(reader.target)
