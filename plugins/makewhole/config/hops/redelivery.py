"""Read where a hop's redelivered records go, `redeliver` or `redeliver_to`, and whom they reach a second time.

A topic has other readers than the hop that lacks a record. A file that shows some has to say what it wants.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from makewhole.config import values
from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.points import PointDraft, named_topic
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.points import PointKind

SOURCE = "source"
"""Name the topic that the hop starts from."""

Drafts = Mapping[str, PointDraft]


@dataclass(frozen=True, kw_only=True)
class RedeliverySettings:
    """Where records go (None: back to the source), despite which groups. `place` is the line that says so, `to_place`
    that of its topic; None: there is no such line. `is_empty`: there is one without a value."""

    place: YamlPlace | None = None
    to_place: YamlPlace | None = None
    to: str | None = None
    despite: tuple[str, ...] = ()
    despite_place: YamlPlace | None = None
    is_empty: bool = False

    @property
    def is_said(self) -> bool:
        """Whether the hop says where its records go, be it wrongly."""
        return self.place is not None or self.is_empty

    @property
    def names(self) -> Sequence[str | None]:
        """The replay topic, None in its place when it cannot be read; nothing where there is none."""
        return [self.to] if self.to_place is not None else []


def read_redelivery(section: Section, drafts: Drafts) -> RedeliverySettings:
    """Read it as far as it can be read; what is wrong is noted."""
    short, long = section.get("redeliver_to"), section.get("redeliver")
    if short is not None and long is not None:
        short.complain(
            "'redeliver' stands beside it, which says the same", "Take this line out: 'redeliver' has 'to' for it"
        )
        return RedeliverySettings(place=long, to_place=short)
    if short is not None:
        return RedeliverySettings(place=short, to_place=short, to=named_topic(short, drafts))
    is_empty = section.has("redeliver_to") or section.has("redeliver")
    return RedeliverySettings(is_empty=is_empty) if long is None else _read_long(long, drafts)


def _read_long(place: YamlPlace, drafts: Drafts) -> RedeliverySettings:
    section = place.section()
    if section is None:
        return RedeliverySettings(place=place, to_place=place)
    section.only("to", "despite")
    to = section.need("to", f"Write '{SOURCE}' for the topic that the hop starts from, or name a replay topic")
    despite = section.get("despite")
    groups = despite.words(values.consumer_group) if despite else ()
    settings = RedeliverySettings(place=place, despite=groups or (), despite_place=despite)
    if to is None:
        return RedeliverySettings(place=place, to_place=place)
    if to.text(str) == SOURCE:
        return settings
    return RedeliverySettings(
        place=place, to_place=to, to=named_topic(to, drafts), despite=settings.despite, despite_place=despite
    )


def check_redelivery(settings: RedeliverySettings, hop: Hop, drafts: Drafts) -> None:
    """Note what does not fit the hop and its remedies."""
    if settings.place is None:
        return
    source = drafts[hop.source]
    if source.kind is not PointKind.TOPIC:
        settings.place.complain(
            f"{hop.name} starts from a {source.kind}, which redelivers nothing", "Take the line out"
        )
    elif settings.to is not None and settings.to_place is not None and settings.to in (hop.source, hop.target):
        _note_own_end(settings, settings.to_place, hop)
    elif not _answered(hop):
        settings.place.complain(
            f"no verdict of {hop.name} is answered by redeliver",
            "Write 'missing: redeliver' in its compensation, or take the line out",
        )
    elif settings.to_place is None and SOURCE in drafts and hop.source != SOURCE:
        settings.place.complain(
            f"'{SOURCE}' is a point of this pipeline, and means the topic that the hop starts from here",
            f"Give the point {SOURCE} another name",
        )
    elif settings.to is not None and settings.to_place is not None:
        _check_key(settings.to_place, settings.to, hop, drafts)
    if settings.despite_place is not None and hop.consumer_group in settings.despite:
        settings.despite_place.complain(
            f"{hop.consumer_group!r} is the group of this hop, which is to read the record", "Take it out of the list"
        )


def _note_own_end(settings: RedeliverySettings, place: YamlPlace, hop: Hop) -> None:
    if settings.to == hop.target:
        place.complain(
            f"{settings.to!r} is where the hop ends: what stands between would never see the record",
            "Name a topic that the consumer of this hop reads",
        )
    elif settings.place is place:
        place.complain(f"{settings.to!r} is where the hop starts, which is the default", "Take the line out")
    else:
        place.complain(f"{settings.to!r} is where the hop starts", f"Write '{SOURCE}'")


def _check_key(place: YamlPlace, name: str, hop: Hop, drafts: Drafts) -> None:
    source = drafts[hop.source]
    if source.key_parts and drafts[name].key_parts and source.key_parts != drafts[name].key_parts:
        place.complain(
            f"{name} has a key of {drafts[name].key_parts} and {hop.source} one of {source.key_parts} parts",
            "Give both points the same parts of the business key, in the same order",
        )


def note_shared(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts, said: Collection[str]) -> None:
    """Note a hop whose redelivered records implicitly reach other readers of its topic; `said`: hops that say where."""
    for place, hop in hops:
        answered = _answered(hop)
        beside = [other for _, other in hops if other is not hop and _is_one_place(drafts, other.source, hop.source)]
        others = [other.name for other in beside if not _is_harmless(other, hop, drafts)]
        if not answered or hop.name in said or not others:
            continue
        otherwise = "upsert" if drafts[hop.target].kind is PointKind.STORE else "report"
        place.complain(
            f"{hop.name} answers {' and '.join(answered)} keys by redeliver: {' and '.join(others)} "
            f"{'reads' if len(others) == 1 else 'read'} {hop.source}, too, and would get the records a second time",
            f"Write 'redeliver: {{to: {SOURCE}}}' on this hop (a record is then sent only while no other reader has "
            "its key; 'despite: [GROUP]' beside it names groups that may read it twice), 'redeliver: {to: POINT}' with "
            f"a replay topic, or '{answered[0]}: {otherwise}' in its compensation",
        )


def _is_harmless(other: Hop, hop: Hop, drafts: Drafts) -> bool:
    """Return whether the reader of another hop is known to take a record twice without harm, or fills the same
    table."""
    target = drafts[other.target]
    overwrites = other.semantics is Semantics.UPSERT or (target.kind is PointKind.STORE and target.has_version)
    return overwrites or _is_one_place(drafts, other.target, hop.target)


def _is_one_place(drafts: Drafts, point_name: str, other: str) -> bool:
    """Return whether two points name one table or topic, as far as a file shows it."""
    points = [drafts[name].point for name in (point_name, other)]
    places = {None if point is None else point.place for point in points}
    return point_name == other or (len(places) == 1 and None not in places)


def _answered(hop: Hop) -> list[str]:
    """Return the verdicts that redelivery answers on a hop."""
    return [verdict for verdict in VERDICTS if getattr(hop.remedies, verdict) is Remedy.REDELIVER]
