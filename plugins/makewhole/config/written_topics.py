"""The topics that a hop's remedies write to beside its own ends: `redeliver_to`."""

from collections.abc import Mapping
from dataclasses import dataclass

from makewhole.config import values
from makewhole.config.points import PointDraft
from makewhole.config.remedies import VERDICTS
from makewhole.config.tree import Place, Section
from makewhole.model.pipeline import Hop, PointKind, Remedy

Drafts = Mapping[str, PointDraft]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a hop says of them. `place` is where the line stands, None without one; `redeliver_to` is None, too, where
    the line cannot be read."""

    place: Place | None
    redeliver_to: str | None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The points that are named, None in place of one that cannot be read."""
        return (self.redeliver_to,) if self.place else ()


def read_written(section: Section, drafts: Drafts) -> Written:
    """As far as it can be read; what is wrong is noted."""
    place = section.get("redeliver_to")
    return Written(place=place, redeliver_to=named_topic(place, drafts) if place else None)


def named_topic(place: Place, drafts: Drafts) -> str | None:
    """The topic point that is named here; anything else is noted."""
    name = place.text(str)
    topics = [point for point, draft in drafts.items() if draft.kind is PointKind.TOPIC]
    if name is None or name in topics:
        return name
    kind = drafts[name].kind if name in drafts else None
    if name not in drafts:
        place.complain(f"{values.shown(name)} is not a point of this pipeline", values.allowed(name, topics))
    elif kind is not None:
        place.complain(f"{name!r} is a {kind}, and records go to topics", values.allowed(name, topics))
    return None


def check_written(written: Written, hop: Hop, drafts: Drafts) -> None:
    """Note a replay topic that nothing goes to, or that the records do not belong to."""
    place, name = written.place, written.redeliver_to
    if place is None or name is None:
        return
    source = drafts[hop.source]
    if source.kind is not PointKind.TOPIC:
        place.complain(f"{hop.name} starts from a {source.kind}, which redelivers nothing", "Take the line out")
    elif name == hop.source:
        place.complain(f"{name!r} is where the hop starts, which is the default", "Take the line out")
    elif name == hop.target:
        place.complain(
            f"{name!r} is where the hop ends: what stands between would never see the record",
            "Name a topic that the consumer of this hop reads",
        )
    elif not answered_by(hop, Remedy.REDELIVER):
        place.complain(
            f"no verdict of {hop.name} is answered by redeliver",
            "Write 'missing: redeliver' in its compensation, or take the line out",
        )
    elif source.key_parts and drafts[name].key_parts and source.key_parts != drafts[name].key_parts:
        place.complain(
            f"{name} has a key of {drafts[name].key_parts} and {hop.source} one of {source.key_parts} parts",
            "Give both points the same parts of the business key, in the same order",
        )


def answered_by(hop: Hop, remedy: Remedy) -> list[str]:
    """The verdicts that a remedy answers on a hop."""
    return [verdict for verdict in VERDICTS if getattr(hop.remedies, verdict) is remedy]
