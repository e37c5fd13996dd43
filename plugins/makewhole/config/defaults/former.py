"""Find what a file of version 1 leaves to the defaults of then, which wrote to people's systems without a line.

Version 2 has no such defaults: what is not named is `report`. A file of version 1 is read where both mean the same.
"""

from collections.abc import Mapping
from dataclasses import replace

from yaml.nodes import MappingNode, ScalarNode

from makewhole.config.hops.remedies import VERDICTS, HopKinds
from makewhole.config.tree import Section, YamlPlace, is_empty
from makewhole.model.pipeline import Hop, PointKind, Remedy, Semantics

FORMER_VERSION = 1
_LEDGER, _TOPIC, _STORE = PointKind.LEDGER, PointKind.TOPIC, PointKind.STORE
_FORMER: Mapping[tuple[PointKind, PointKind], Mapping[str, Remedy]] = {
    (_LEDGER, _TOPIC): {"missing": Remedy.PRODUCE},
    (_TOPIC, _TOPIC): {"missing": Remedy.REDELIVER},
    (_TOPIC, _STORE): {"missing": Remedy.REDELIVER, "duplicate": Remedy.QUARANTINE},
    (_LEDGER, _STORE): {"missing": Remedy.UPSERT, "duplicate": Remedy.QUARANTINE},
}


def former_default(kinds: HopKinds, verdict: str) -> Remedy:
    """Return what version 1 did about a verdict on a hop that names no remedy for it."""
    possible = kinds.possible(verdict)
    if verdict == "missing" and kinds.semantics is Semantics.UPSERT and Remedy.UPSERT in possible:
        return Remedy.UPSERT
    former = _FORMER[kinds.source, kinds.target].get(verdict, Remedy.REPORT)
    return former if former in possible else Remedy.REPORT


def with_former_defaults(
    hop: Hop, kinds: HopKinds, section: Section, of_pipeline: Mapping[str, tuple[YamlPlace, Remedy]]
) -> Hop:
    """Return a hop of a version 1 file as it was meant; what it leaves to the defaults of then is noted."""
    own = _own_remedies(section)
    unnamed = [
        verdict
        for verdict in VERDICTS
        if verdict not in own and not (verdict in of_pipeline and kinds.can_do(of_pipeline[verdict][1], verdict))
    ]
    left = {verdict: former_default(kinds, verdict) for verdict in unnamed}
    left = {verdict: remedy for verdict, remedy in left.items() if remedy is not Remedy.REPORT}
    if not left:
        return hop
    named = {**own, **{verdict: remedy.value for verdict, remedy in left.items()}}
    line = ", ".join(f"{verdict}: {named[verdict]}" for verdict in VERDICTS if verdict in named)
    section.place.complain(
        f"{hop.name} names no remedy for {' and '.join(left)} keys, and version {FORMER_VERSION} took "
        f"{' and '.join(remedy.value for remedy in left.values())}",
        f"Write 'compensation: {{{line}}}' on this hop to keep that, or 'version: 2' at the top to have nothing "
        "written that the file does not name",
    )
    return replace(hop, remedies=replace(hop.remedies, **left))


def _own_remedies(section: Section) -> Mapping[str, str]:
    """Return the remedies that the hop's own section names, as written."""
    place = section.get_quietly("compensation")
    own = Section(place) if place is not None and isinstance(place.node, MappingNode) else ()
    return {
        verdict: inner.node.value
        for verdict, inner in own
        if verdict in VERDICTS and isinstance(inner.node, ScalarNode) and not is_empty(inner.node)
    }
