"""Read the topics that a hop's remedies write to besides its own ends: `redeliver_to`, and `to` of its `reverse`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.config.points import PointDraft, named_topic
from makewhole.config.remedies import VERDICTS
from makewhole.config.reverse import read_reverse
from makewhole.config.template.reversal import names_of
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.pipeline import Hop, PointKind, Remedy, Reverse

Drafts = Mapping[str, PointDraft]


@dataclass(frozen=True, kw_only=True)
class WrittenTopics:
    """The topics as a hop names them. A place is None where there is no such line; what cannot be read is None, too."""

    replay_place: YamlPlace | None
    redeliver_to: str | None
    reverse_place: YamlPlace | None
    reverse: Reverse | None

    @property
    def names(self) -> Sequence[str | None]:
        """The points that are named, None in place of one that cannot be read."""
        replay = [self.redeliver_to] if self.replay_place else []
        reverse = [self.reverse.to if self.reverse else None] if self.reverse_place else []
        return [*replay, *reverse]


def read_written(section: Section, drafts: Drafts) -> WrittenTopics:
    """Read them as far as they can be read; what is wrong is noted."""
    replay, reverse = section.get("redeliver_to"), section.get("reverse")
    return WrittenTopics(
        replay_place=replay,
        redeliver_to=named_topic(replay, drafts) if replay else None,
        reverse_place=reverse,
        reverse=read_reverse(reverse, drafts) if reverse else None,
    )


def check_written(written: WrittenTopics, hop: Hop, drafts: Drafts) -> None:
    """Note what does not fit the hop and its remedies."""
    if written.replay_place is not None and written.redeliver_to is not None:
        _check_replay_topic(written.replay_place, written.redeliver_to, hop, drafts)
    if written.reverse_place is not None:
        _check_reverse(written.reverse_place, hop)


def _check_replay_topic(place: YamlPlace, name: str, hop: Hop, drafts: Drafts) -> None:
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


def _check_reverse(place: YamlPlace, hop: Hop) -> None:
    answered = answered_by(hop, Remedy.REVERSE)
    if not answered:
        place.complain(
            f"no verdict of {hop.name} is answered by reverse",
            "Write 'duplicate: reverse' in its compensation, or take the template out",
        )
    elif hop.reverse is not None and "unexpected" in answered and "source" in names_of(hop.reverse):
        place.complain(
            "uses 'source', and an unexpected key has none", "Use 'row' and 'key', or answer only duplicates by reverse"
        )


def answered_by(hop: Hop, remedy: Remedy) -> list[str]:
    """Return the verdicts that a remedy answers on a hop."""
    return [verdict for verdict in VERDICTS if getattr(hop.remedies, verdict) is remedy]
