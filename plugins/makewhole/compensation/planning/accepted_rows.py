"""Find the rows that stay as they are by a person's word, whatever another finding of their key asks for."""

from collections.abc import Iterable

from makewhole.model.pipeline import Pipeline, Remedy
from makewhole.model.plan import Action
from makewhole.model.points import TablePoint

_TOUCHING = (Remedy.QUARANTINE, Remedy.UPSERT)


class AcceptedRows:
    """The rows of accepted findings, by the place of their table."""

    def __init__(self, pipeline: Pipeline, accepted: Iterable[tuple[str, str]]) -> None:
        """`accepted`: hop and key hash of the findings of all windows that a person has accepted."""
        self._pipeline = pipeline
        hops = {hop.name: hop for hop in pipeline.hops}
        known = [(hops[name], key_hash) for name, key_hash in accepted if name in hops]
        self._hops = {
            (pipeline.place_of(hop.target), key_hash): hop.name
            for hop, key_hash in known
            if isinstance(pipeline.points[hop.target], TablePoint)
        }

    def reason(self, action: Action) -> str | None:
        """Return why an action is not done that would write or move the rows of an accepted finding, or None."""
        hop = self._hops.get((self._pipeline.place_of(action.target), action.key_hash))
        if hop is None or action.remedy not in _TOUCHING:
            return None
        return (
            f"accepted: a person accepted what {hop} says of this key, and its rows in {action.target} stay as they "
            "are; take that word back (`makewhole accept --revoke ID`), or accept this finding, too"
        )
