"""Find where a record that is sent would come a second time, and which rows stand in its way.

Such a row is of a key that a ledger has, and the topic before its table lacks: its loader would add a second row. Where
both remedies are on, it is put aside first, and then the record is sent.
"""

from collections.abc import Iterable

from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Finding, Verdict

_NEVER_COMMITTED = (Cause.NEVER_PRODUCED, Cause.ABORTED, Cause.PARTIAL_TRANSACTION)
"""The causes by which no reader of what is committed can have had the record."""
_IF_PRODUCED = "name the 'version' of {point} if its loader overwrites, or take the row out first"
_IF_UNEXPECTED = (
    "write `unexpected: quarantine` on hop {hop}, which puts the row aside before the record is sent, or name the "
    "'version' of {point} if its loader overwrites"
)
_IF_REDELIVERED = "use upsert, a replay topic, or 'despite' under 'redeliver' if that does no harm"


def already_in_table(point: str, *, is_produced: bool, hop: str | None = None) -> Refusal:
    """Return why a record is not sent whose key a table holds that would add a row for it. `hop`: the one that calls
    this row unexpected."""
    advices = _IF_UNEXPECTED if hop is not None else _IF_PRODUCED if is_produced else _IF_REDELIVERED
    advice = advices.format(point=point, hop=hop)
    return Refusal(RefusalCode.TWICE, f"{point} holds the key, and would get it a second time; {advice}")


def topics_behind(pipeline: Pipeline, topic: str) -> tuple[str, ...]:
    """Return the topics that are filled from a topic, directly or over further ones, the near ones first."""
    ends = dict.fromkeys(hop.target for hop in pipeline.hops_behind(topic))
    return tuple(name for name in ends if has_log(pipeline.points[name]))


class SecondCopies:
    """Find which topics behind a topic have a record already that is produced to it, by the findings of some keys.

    Tables are asked once more before a record is sent. A log cannot be asked for a key.
    """

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding]) -> None:
        """`findings`: all of their keys."""
        self._pipeline = pipeline
        targets = {hop.name: pipeline.place_of(hop.target) for hop in pipeline.hops}
        unexpected = [finding for finding in findings if finding.verdict is Verdict.UNEXPECTED]
        self._unexpected = {(targets.get(finding.hop), finding.key_hash) for finding in unexpected}

    def refusal(self, topic: str, finding: Finding) -> Refusal | None:
        """Return why the record of a key that a topic lacks is not produced to it, or None."""
        behind = topics_behind(self._pipeline, topic)
        holding = self._holding(behind, finding)
        if holding:
            return Refusal(
                RefusalCode.TWICE,
                f"{holding[0]} is filled from {topic}, holds the key without it, and would get it a second "
                "time; send the record by hand to who else lacks it",
            )
        if behind and finding.cause not in _NEVER_COMMITTED:
            return Refusal(
                RefusalCode.TWICE,
                f"{behind[0]} is filled from {topic}, and may have had the record before {topic} lost it "
                f"({finding.cause.value}); look for the key there, and send the record by hand where it lacks it",
            )
        return None

    def _holding(self, points: Iterable[str], finding: Finding) -> list[str]:
        place_of = self._pipeline.place_of
        return [name for name in points if (place_of(name), finding.key_hash) in self._unexpected]


class RowsInTheWay:
    """The unexpected rows of some keys in tables, by the findings of all hops."""

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding]) -> None:
        """`findings`: all of their keys, and the open ones of other windows: a row may have a later time than that of
        the ledger which it stands in the way of."""
        self._pipeline = pipeline
        self._hops = {hop.name: hop for hop in pipeline.hops}
        self._found: dict[tuple[str, str], list[tuple[Hop, Finding]]] = {}
        for finding in findings:
            hop = self._hops.get(finding.hop)
            if hop is not None and finding.verdict is Verdict.UNEXPECTED:
                place = pipeline.place_of(hop.target)
                self._found.setdefault((place, finding.key_hash), []).append((hop, finding))

    def of(self, topic: str, finding: Finding) -> list[tuple[Hop, Finding]] | Refusal:
        """Return the hops and findings by which rows are put aside before the record of a key comes to a topic, one for
        each table that would add a row; or why one of them cannot be."""
        by_place: dict[str, tuple[Hop, Finding]] = {}
        for table in sorted(self._pipeline.tables_that_add(topic)):
            place = self._pipeline.place_of(table)
            rows = self._found.get((place, finding.key_hash), [])
            movable = [row for row in rows if row[0].remedies.unexpected is Remedy.QUARANTINE]
            if rows and not movable:
                return already_in_table(table, is_produced=True, hop=rows[0][0].name)
            for row in movable[:1]:
                by_place.setdefault(place, row)
        return list(by_place.values())
