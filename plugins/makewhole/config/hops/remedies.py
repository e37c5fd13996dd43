"""Choose the remedy of each verdict on each hop: those that are possible, and the default, which is `report`."""

from collections.abc import Mapping
from dataclasses import dataclass

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Remedies, Remedy, Semantics
from makewhole.model.points import PointKind

VERDICTS = ("missing", "duplicate", "mismatched", "unexpected", "vanished")
_LEDGER, _TOPIC, _STORE = PointKind.LEDGER, PointKind.TOPIC, PointKind.STORE
_REDELIVER, _UPSERT, _PRODUCE = Remedy.REDELIVER, Remedy.UPSERT, Remedy.PRODUCE
_QUARANTINE, _REVERSE, _REPORT = Remedy.QUARANTINE, Remedy.REVERSE, Remedy.REPORT
_INTO_LOGS = (_REDELIVER, _PRODUCE)
_WRITE_TEMPLATE = "Write one beside the hop's compensation: 'reverse: {to: POINT, value: {…}}'"

# `report` is the default: nothing is written that no file asks for. `redeliver` writes to the topic the hop starts
# from, `produce` to the topic it ends in, from the ledger; `upsert` and `quarantine` touch rows, so they need a store.
# `reverse` takes back what an extra copy did, wherever it is.
_POSSIBLE: Mapping[tuple[PointKind, PointKind], Mapping[str, tuple[Remedy, ...]]] = {
    (_LEDGER, _TOPIC): {
        "missing": (_REPORT, _PRODUCE),
        "duplicate": (_REPORT, _REVERSE),
        "mismatched": (_REPORT,),
        "unexpected": (_REPORT,),
        "vanished": (_REPORT,),
    },
    (_TOPIC, _TOPIC): {
        "missing": (_REPORT, _REDELIVER),
        "duplicate": (_REPORT, _REVERSE),
        "mismatched": (_REPORT,),
        "unexpected": (_REPORT,),
        "vanished": (_REPORT,),
    },
    (_TOPIC, _STORE): {
        "missing": (_REPORT, _REDELIVER, _UPSERT),
        "duplicate": (_REPORT, _QUARANTINE, _REVERSE),
        "mismatched": (_REPORT, _REDELIVER, _UPSERT),
        "unexpected": (_REPORT, _QUARANTINE, _REVERSE),
        "vanished": (_REPORT, _REDELIVER, _UPSERT),
    },
    (_LEDGER, _STORE): {
        "missing": (_REPORT, _UPSERT),
        "duplicate": (_REPORT, _QUARANTINE, _REVERSE),
        "mismatched": (_REPORT, _UPSERT),
        "unexpected": (_REPORT, _QUARANTINE, _REVERSE),
        "vanished": (_REPORT, _UPSERT),
    },
}


@dataclass(frozen=True, kw_only=True)
class HopKinds:
    """The kinds of point that a hop joins; `name` is for messages. `has_version`: the topic that its remedies write
    to names a version. `is_versioned`: so does the store that it ends in. `has_template`: the hop has a `reverse` of
    its own. `can_produce`: records can be made in the formats of the topic that it ends in. `lacks_payload`: they can
    be made of whole values alone, and its ledger names no column with these. `is_by_coordinates`: the key of the topic
    that its remedies write to is where a record lies, or how it is numbered. `is_grouped`: many records become one
    row."""

    name: str
    source: PointKind
    target: PointKind
    semantics: Semantics = Semantics.EVENT
    has_version: bool = False
    is_versioned: bool = False
    has_template: bool = False
    can_produce: bool = True
    lacks_payload: bool = False
    is_by_coordinates: bool = False
    is_grouped: bool = False

    def possible(self, verdict: str) -> tuple[Remedy, ...]:
        """Return the remedies for a verdict on this hop, `report` first. Hops that no reader makes have none.

        A record that is sent again has other coordinates: where they are the key, it makes no key whole.

        A log takes for the latest what was written last: under `upsert`, only a version keeps a repeated record from
        overtaking one that came meanwhile. A table can be guarded. What is current state is mended, not reversed.

        Under `event` a loader may insert: a record that comes again would then add a row beside the one that differs.
        A store that names a version says that its loader overwrites.
        """
        choices = _POSSIBLE[self.source, self.target][verdict]
        if self.is_grouped:
            return (_REPORT,)
        choices = tuple(choice for choice in choices if self.makes_records or choice is not _PRODUCE)
        if self.is_by_coordinates:
            choices = tuple(choice for choice in choices if choice not in _INTO_LOGS)
        if self.semantics is Semantics.EVENT:
            may_add = verdict == "mismatched" and not self.is_versioned
            return tuple(choice for choice in choices if not (may_add and choice is _REDELIVER))
        choices = tuple(choice for choice in choices if choice is not _REVERSE)
        if not self.has_version:
            choices = tuple(choice for choice in choices if choice not in _INTO_LOGS)
        return choices

    @property
    def makes_records(self) -> bool:
        """Whether records can be made for the topic that the hop ends in."""
        return self.can_produce and not self.lacks_payload

    def can_do(self, remedy: Remedy, verdict: str) -> bool:
        """Return whether the hop takes this remedy without having asked for it itself."""
        return remedy in self.possible(verdict) and (remedy is not _REVERSE or self.has_template)

    def restriction(self, remedy: Remedy, verdict: str) -> str:
        """Return why this hop cannot take a remedy that other hops between such points can; empty for nothing."""
        if remedy not in _POSSIBLE[self.source, self.target][verdict]:
            return ""
        if self.is_grouped:
            return " of which a row is made of many records, and is no copy of one"
        if remedy is _PRODUCE and not self.can_produce:
            return " whose values or record keys are of a format in which no record can be made"
        if remedy is _PRODUCE and self.lacks_payload:
            return " whose values carry their schema, from a ledger without `payload`, a column with the whole value"
        if self.is_by_coordinates and remedy in _INTO_LOGS:
            return " whose key is its coordinates: a record that is sent again has others"
        if self.semantics is Semantics.EVENT:
            return " without a version: a loader that inserts would add a row"
        return " under upsert without a version" if remedy in _INTO_LOGS else " under upsert"


def can_join(source: PointKind, target: PointKind) -> bool:
    """Return whether a hop may lead from such a point to such a point."""
    return (source, target) in _POSSIBLE


def read_wanted(section: Section | None) -> Mapping[str, tuple[YamlPlace, Remedy]]:
    """Return the remedies that a `compensation` section asks for, by verdict; wrong words are noted."""
    wanted = {}
    for verdict in VERDICTS if section else ():
        place = section.get(verdict) if section else None
        remedy = place.text(_remedy) if place else None
        if place is not None and remedy is not None:
            wanted[verdict] = (place, remedy)
    return wanted


def _remedy(text: str) -> Remedy:
    if text == Remedy.RESTORE:
        raise values.UnfitError(
            "'restore' is what a plan does that undoes another", "Use `makewhole plan undo PLAN`; here name a remedy"
        )
    choices = [remedy.value for remedy in Remedy if remedy is not Remedy.RESTORE]
    if text not in choices:
        raise values.UnfitError(f"{values.shown(text)} is not a remedy", values.allowed(text, choices))
    return Remedy(text)


def choose(
    kinds: HopKinds, of_pipeline: Mapping[str, tuple[YamlPlace, Remedy]], of_hop: Mapping[str, tuple[YamlPlace, Remedy]]
) -> Remedies:
    """Choose the hop's own remedy, which must be possible (else it is noted); else the pipeline's where it is
    possible; else the default."""
    chosen = {}
    for verdict in VERDICTS:
        possible = kinds.possible(verdict)
        chosen[verdict] = possible[0]
        if verdict in of_pipeline and kinds.can_do(of_pipeline[verdict][1], verdict):
            chosen[verdict] = of_pipeline[verdict][1]
        if verdict in of_hop:
            place, chosen[verdict] = of_hop[verdict]
            if chosen[verdict] is _REVERSE and _REVERSE in possible and not kinds.has_template:
                place.complain(f"'reverse' needs a template, and {kinds.name} has none", _WRITE_TEMPLATE)
            elif chosen[verdict] not in possible:
                place.complain(
                    f"{chosen[verdict].value!r} is not possible for {verdict} keys from a {kinds.source} to a "
                    f"{kinds.target}{kinds.restriction(chosen[verdict], verdict)}",
                    f"Allowed: {', '.join(sorted(possible))}",
                )
    return Remedies(**chosen)


def note_useless(of_pipeline: Mapping[str, tuple[YamlPlace, Remedy]], hops: tuple[HopKinds, ...]) -> None:
    """Note a pipeline-wide remedy that is possible on no hop: it would be silently without effect."""
    for verdict, (place, remedy) in of_pipeline.items():
        possible = {choice for hop in hops for choice in hop.possible(verdict)}
        if not hops or any(hop.can_do(remedy, verdict) for hop in hops):
            continue
        if remedy in possible:
            place.complain(f"'reverse' needs a template, and no hop of {verdict} keys has one", _WRITE_TEMPLATE)
        else:
            place.complain(
                f"{remedy.value!r} is possible for {verdict} keys on no hop of this pipeline",
                f"Allowed: {', '.join(sorted(possible))}",
            )
