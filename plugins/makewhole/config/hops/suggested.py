"""Name the remedy that would answer what a hop only reports, or why no line of the file can.

Of several remedies the one is suggested that touches only the place where something is wrong: a row is written into the
store that lacks it, not sent to every reader of a topic.
"""

from dataclasses import dataclass

from makewhole.config.hops.remedies import HopKinds
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, can_look_up, has_log, is_by_coordinates

_CONTAINED = "a record cannot be taken out of a topic, and its copies are contained at the stores"


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A remedy for one verdict on one hop, and what it does. Without one, `does` says why there is none."""

    verdict: str
    remedy: Remedy | None
    does: str

    @property
    def line(self) -> str | None:
        """The entry of the hop's `compensation` that switches the remedy on."""
        return None if self.remedy is None else f"{self.verdict}: {self.remedy.value}"


def kinds_of(pipeline: Pipeline, hop: Hop) -> HopKinds:
    """Return the kinds that a hop of a pipeline joins."""
    source, target = pipeline.points[hop.source], pipeline.points[hop.target]
    log = source if has_log(source) else target
    return HopKinds(
        name=hop.name,
        source=source.kind,
        target=target.kind,
        semantics=hop.semantics,
        has_version=log.version is not None,
        is_versioned=target.version is not None,
        has_template=hop.reverse is not None,
        can_produce=not has_log(target) or target.can_encode,
        lacks_payload=has_log(target) and target.needs_payload and can_look_up(source) and source.payload is None,
        is_by_coordinates=has_log(log) and is_by_coordinates(log.key),
        is_grouped=hop.group is not None,
    )


def suggest(pipeline: Pipeline, hop: Hop, verdict: str) -> Suggestion:
    """Return what would answer a verdict on a hop."""
    kinds = kinds_of(pipeline, hop)
    if kinds.is_grouped:
        remedy, does = None, f"a sum is no copy of a record; what loads {hop.target} has to add it up again"
    elif kinds.target is PointKind.STORE and verdict == "unexpected" and pipeline.forgets_records_of(hop.target):
        remedy, does = None, _why_no_row_is_moved(hop)
    elif kinds.target is PointKind.STORE:
        remedy, does = _in_a_store(hop, verdict)
    elif verdict == "missing":
        remedy, does = _into_a_topic(pipeline, hop, kinds)
    else:
        remedy, does = None, _why_it_stays(kinds, verdict)
    return Suggestion(verdict=verdict, remedy=remedy, does=does)


def _in_a_store(hop: Hop, verdict: str) -> tuple[Remedy | None, str]:
    match verdict:
        case "missing":
            return Remedy.UPSERT, f"would write their rows into {hop.target}, from {hop.source}"
        case "mismatched":
            return Remedy.UPSERT, f"would write the values of {hop.source} into their rows in {hop.target}"
        case "duplicate":
            return Remedy.QUARANTINE, f"would move the rows too many in {hop.target} aside, restorable"
        case "unexpected":
            does = f"would move their rows in {hop.target} aside, restorable; look first whose they are"
            return Remedy.QUARANTINE, does
        case "vanished":
            return None, (
                "what was deleted is not brought back unasked; where it was deleted by mistake, `vanished: upsert` "
                f"writes their rows into {hop.target} again"
            )
        case _:
            return None, f"no remedy answers {verdict} keys"


def _why_no_row_is_moved(hop: Hop) -> str:
    """Return why nothing is done about a row whose record is not found."""
    return (
        f"their records may be in windows that are known no more (`history`), so that no row of {hop.target} is moved"
    )


def _why_it_stays(kinds: HopKinds, verdict: str) -> str:
    """Return why nothing is done about a record that is in a topic."""
    if verdict == "vanished":
        return "what was taken out of a topic is not sent again"
    if verdict != "duplicate":
        return "a record can neither be changed in a topic nor taken out of it"
    if Remedy.REVERSE not in kinds.possible(verdict):
        return _CONTAINED
    return f"{_CONTAINED}; what a copy did is taken back by `reverse`, with an event that the hop describes"


def _into_a_topic(pipeline: Pipeline, hop: Hop, kinds: HopKinds) -> tuple[Remedy | None, str]:
    """Suggest to send a record again only where it reaches no other reader: into the topic that lacks it, or to the one
    hop that reads the source."""
    remedy = Remedy.PRODUCE if kinds.source is PointKind.LEDGER else Remedy.REDELIVER
    if remedy not in kinds.possible("missing"):
        if not kinds.makes_records:
            return None, f"no record can be made in the format of {hop.target}; its producer has to send them again"
        written = hop.target if remedy is Remedy.PRODUCE else hop.source
        if kinds.is_by_coordinates:
            return None, f"a record that is sent into {written} again has other coordinates, and is another key"
        return None, f"under upsert nothing is sent into {written} without a version; name one at the point"
    if remedy is Remedy.PRODUCE:
        return remedy, f"would send them into {hop.target}, from {hop.source}"
    readers = [other.target for other in pipeline.readers_of(hop.source) if other.target != hop.target]
    if readers:
        return None, (
            f"what is sent into {hop.source} again reaches {', '.join(readers)}, too; `redeliver` needs a topic of its "
            "own there, see `redeliver_to`"
        )
    return remedy, f"would send their records into {hop.source} again"
