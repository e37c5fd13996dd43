"""Find what a file of version 1 leaves to the defaults of then, which wrote to people's systems without a line.

Version 2 has other defaults: a remedy that is not named is `report`. A file of version 1 is read where both mean the
same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from yaml.nodes import MappingNode, ScalarNode

from makewhole.config.hops.remedies import VERDICTS, HopKinds
from makewhole.config.points import PointDraft
from makewhole.config.tree import Section, YamlPlace, is_empty
from makewhole.model.pipeline import Hop, Remedy, Semantics
from makewhole.model.points import PointKind

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
    if "vanished" in unnamed:
        left["vanished"] = _brought_back(kinds, left.get("missing", hop.remedies.missing))
    left = {verdict: remedy for verdict, remedy in left.items() if remedy is not Remedy.REPORT}
    if not left:
        return hop
    named = {**own, **{verdict: remedy.value for verdict, remedy in left.items()}}
    line = ", ".join(f"{verdict}: {named[verdict]}" for verdict in VERDICTS if verdict in named)
    section.place.complain(
        f"{hop.name} names no remedy for {_joined(left)} keys, and version {FORMER_VERSION} took "
        f"{_joined([remedy.value for remedy in left.values()])}",
        f"Write 'compensation: {{{line}}}' on this hop to keep that, or 'version: 2' at the top to have nothing "
        "written that the file does not name",
    )
    return replace(hop, remedies=replace(hop.remedies, **left))


def _brought_back(kinds: HopKinds, missing: Remedy) -> Remedy:
    """Return what version 1 did about a row that a certified window had seen and that was gone: it was missing."""
    return missing if missing in kinds.possible("vanished") else Remedy.REPORT


def note_former_settings(top: Section, hops: Sequence[Hop], drafts: Mapping[str, PointDraft]) -> None:
    """Note the settings that a version 1 file leaves out, and that meant something else then. `hops` as they were
    meant."""
    if not top.has("start"):
        top.absent("start").complain(
            f"is missing, and version {FORMER_VERSION} took earliest",
            "Write 'start: earliest' to keep that, or the time from which on every hop has its keys at both ends",
        )
    _note_pending(top)
    for name in _written_without_partition(hops):
        place = drafts[name].place
        point = Section(place) if isinstance(place.node, MappingNode) else None
        if point is not None and drafts[name].kind is _TOPIC and not point.has("partitioner"):
            point.absent("partitioner").complain(
                f"is missing, and version {FORMER_VERSION} chose partitions by crc32",
                "Write 'partitioner: crc32' to keep that, or 'partitioner: murmur2' where the topic's own producers "
                "are Java's",
            )


def _note_pending(top: Section) -> None:
    """Note a wait without an end, which no file can have any more."""
    place = top.get_quietly("pending")
    if place is not None and (not isinstance(place.node, MappingNode) or Section(place).has("max_age")):
        return
    (place or top.absent("pending")).complain(
        f"{'names no max_age' if place else 'is missing'}, and version {FORMER_VERSION} let keys wait without an end: "
        "what never arrived was certified",
        "Write 'pending: {max_age: 1d}', or how long a key may wait before its absence is a loss",
    )


def _written_without_partition(hops: Sequence[Hop]) -> Sequence[str]:
    """Return the points to which records go whose partition makewhole has to choose."""
    produced = [hop.target for hop in hops if hop.remedies.missing is Remedy.PRODUCE]
    reversals = [hop.reverse.to for hop in hops if hop.reverse is not None]
    return list(dict.fromkeys(produced + reversals))


def _joined(words: Iterable[str]) -> str:
    """Join words as a sentence does: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _own_remedies(section: Section) -> Mapping[str, str]:
    """Return the remedies that the hop's own section names, as written."""
    place = section.get_quietly("compensation")
    own = Section(place) if place is not None and isinstance(place.node, MappingNode) else ()
    return {
        verdict: inner.node.value
        for verdict, inner in own
        if verdict in VERDICTS and isinstance(inner.node, ScalarNode) and not is_empty(inner.node)
    }
