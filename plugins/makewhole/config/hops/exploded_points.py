"""Check what cannot be judged or done of topics whose events are the elements of their records."""

from collections.abc import Sequence
from enum import StrEnum

from makewhole.config import values
from makewhole.config.hops.redelivery import Drafts
from makewhole.config.tree import YamlPlace
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.points import has_log

REMOVED = "removed_elements"
"""The line of a hop that says what becomes of an element that a newer record does not have."""


class RemovedElements(StrEnum):
    """Name what the target has of an element that a newer record of the same kind does not have any more."""

    KEPT = "kept"
    DELETED = "deleted"


_INTO_LOGS = {Remedy.REDELIVER, Remedy.PRODUCE, Remedy.REVERSE}


def note_exploded(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts) -> None:
    """Note what cannot be said on a hop from such a topic, or into one."""
    for place, hop in hops:
        divided = [name for name in (hop.source, hop.target) if _is_divided(name, drafts)]
        _note_removed(place, hop, divided)
        if divided:
            _note_whole_records(place, hop, divided)
        for name in (hop.redeliver_to, hop.reverse.to if hop.reverse else None):
            if name is not None and _is_divided(name, drafts):
                place.complain(
                    f"the events of {name} are elements of its records, and a record of it would be written for one",
                    "Name a topic with a record for each event",
                )


def _is_divided(name: str, drafts: Drafts) -> bool:
    draft = drafts.get(name)
    return draft is not None and has_log(draft.point) and draft.point.explode is not None


def _note_whole_records(place: YamlPlace, hop: Hop, divided: Sequence[str]) -> None:
    """Note the remedies that write a record: it has other elements than the one that was proved wrong."""
    wrong = sorted(hop.remedies.chosen & _INTO_LOGS)
    if wrong:
        place.complain(
            f"{', '.join(wrong)} would write a whole record, with all its elements, for one of them: those of "
            f"{' and '.join(divided)} have several",
            "Write 'upsert' for what a store lacks or has otherwise, 'quarantine' for what it has too often, and "
            "'report' where the hop ends in a topic",
        )


def _note_removed(place: YamlPlace, hop: Hop, divided: Sequence[str]) -> None:
    said = _said(place)
    is_needed = bool(divided) and hop.semantics is Semantics.UPSERT
    if said is not None and not is_needed:
        said.complain(
            f"{REMOVED!r} is about newer records with fewer elements, and the hop has none",
            f"Take the line out, or write 'semantics: {Semantics.UPSERT}' on a hop of a topic with 'explode'",
        )
    if not is_needed:
        return
    word = None if said is None else said.text(values.choice(RemovedElements, "what becomes of removed elements"))
    if said is None:
        place.complain(
            "'semantics: upsert' takes the latest version of each element, and nothing says what becomes of one that a "
            "newer record does not have any more",
            f"Write '{REMOVED}: {RemovedElements.KEPT}' if what reads {divided[0]} leaves it as it was; otherwise "
            "take 'semantics' out, or compare whole records",
        )
    elif word is RemovedElements.DELETED:
        said.complain(
            "no record names the elements that it does not have any more, and those of older records are known by "
            "their own keys alone: a row that should be gone could not be proved wrong",
            "Compare whole records (a point without 'explode', a store with the array in a column), or write "
            f"'{REMOVED}: {RemovedElements.KEPT}' if such rows stay",
        )


def _said(place: YamlPlace) -> YamlPlace | None:
    section = place.section()
    return None if section is None else section.get_quietly(REMOVED)
