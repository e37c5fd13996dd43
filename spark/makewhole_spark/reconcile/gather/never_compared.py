"""Find compared columns of which neither end of a hop has ever had a value, as where the file misspells a name.

What is null at both ends is the same there: nothing of such a column is compared, and every key may match.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from makewhole.journal.results import hop_results
from makewhole.journal.results.snapshot_manifests import NEVER_VALUED, VALUES_OF
from makewhole.model.hops import Hop
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.places.compared_columns import compared_on
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows

NEVER_COMPARED = "never_compared"
"""The entry of a hop's result with these columns."""


def never_compared(neighbours: NeighbouringWindows, hop: Hop) -> Sequence[str]:
    """Return these columns of a hop: neither a window before with the same columns nor this one has a value of them at
    any of its ends."""
    if hop.group is not None:
        return []
    now = set(compared_on(neighbours.context.pipeline, hop)).intersection(
        *(neighbours.manifests[name].get(NEVER_VALUED, ()) for name in (hop.source, hop.target))
    )
    before = neighbours.right_before
    if now and before is not None and _are_same_columns(neighbours, neighbours.manifests_of(before), hop):
        result = hop_results.results(neighbours.journal, before).get(hop.name)
        if result is not None:
            now &= set(result.files.get(NEVER_COMPARED, ()))
    return sorted(now)


def _are_same_columns(neighbours: NeighbouringWindows, before: Mapping[str, Any], hop: Hop) -> bool:
    return all(
        before.get(name, {}).get(VALUES_OF) == neighbours.manifests[name].get(VALUES_OF)
        for name in (hop.source, hop.target)
    )


def never_compared_incident(hop: Hop, columns: Sequence[str]) -> Incident:
    """Return the incident of a hop that has such columns."""
    return Incident(
        kind=IncidentKind.NEVER_COMPARED,
        point=hop.target,
        topic=hop.name,
        topic_id="",
        detail={"hop": hop.name, "columns": list(columns)},
    )
