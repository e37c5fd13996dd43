"""Check what cannot be judged or done of a topic whose events are the elements of its records."""

from collections.abc import Sequence

from makewhole.config.hops.redelivery import Drafts
from makewhole.config.tree import YamlPlace
from makewhole.model.pipeline import Hop, Remedy, Semantics
from makewhole.model.points import has_log


def note_exploded(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts) -> None:
    """Note hops into such a topic, and what cannot be said on a hop from it."""
    names = {name for name, draft in drafts.items() if has_log(draft.point) and draft.point.explode is not None}
    for place, hop in hops:
        if hop.target in names:
            place.complain(
                f"the events of {hop.target} are elements of its records, and {hop.source} has whole records",
                f"Compare {hop.source} with the topic in a pipeline file of its own, in which the point has no "
                "'explode'",
            )
        elif hop.source in names:
            _note_source(place, hop, drafts)


def _note_source(place: YamlPlace, hop: Hop, drafts: Drafts) -> None:
    if has_log(drafts[hop.target].point):
        place.complain(
            f"the events of {hop.source} are elements of its records, and {hop.target} is a topic of records",
            "Compare the two topics record by record, or lead the hop into a store",
        )
    if hop.semantics is Semantics.UPSERT:
        place.complain(
            "'semantics: upsert' takes the latest version of each element, and an element that a newer record has no "
            "more would stand",
            "Take 'semantics' out, or compare records whose key is that of the whole",
        )
    wrong = sorted(hop.remedies.chosen & {Remedy.REDELIVER, Remedy.REVERSE})
    if wrong:
        place.complain(
            f"{', '.join(wrong)} would write a whole record, with all its elements, for one of them",
            "Write 'upsert' for what is missing or mismatched, and 'quarantine' for what is there too often",
        )
