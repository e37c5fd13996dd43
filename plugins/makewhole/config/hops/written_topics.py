"""Read the topics that a hop's remedies write to besides its own ends: where it redelivers to, and `to` of its
`reverse`."""

from collections.abc import Sequence
from dataclasses import dataclass

from makewhole.config.hops.redelivery import Drafts, RedeliverySettings, check_redelivery, read_redelivery
from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.hops.reverse import read_reverse
from makewhole.config.template.reversal import names_of
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop, Remedy, Reverse


@dataclass(frozen=True, kw_only=True)
class WrittenTopics:
    """The topics as a hop names them. A place is None where there is no such line; what cannot be read is None, too."""

    redelivery: RedeliverySettings
    reverse_place: YamlPlace | None
    reverse: Reverse | None

    @property
    def names(self) -> Sequence[str | None]:
        """The points that are named, None in place of one that cannot be read."""
        reverse = [self.reverse.to if self.reverse else None] if self.reverse_place else []
        return [*self.redelivery.names, *reverse]


def read_written(section: Section, drafts: Drafts) -> WrittenTopics:
    """Read them as far as they can be read; what is wrong is noted."""
    reverse = section.get("reverse")
    return WrittenTopics(
        redelivery=read_redelivery(section, drafts),
        reverse_place=reverse,
        reverse=read_reverse(reverse, drafts) if reverse else None,
    )


def check_written(written: WrittenTopics, hop: Hop, drafts: Drafts) -> None:
    """Note what does not fit the hop and its remedies."""
    if None not in written.redelivery.names:
        check_redelivery(written.redelivery, hop, drafts)
    if written.reverse_place is not None:
        _check_reverse(written.reverse_place, hop)


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
