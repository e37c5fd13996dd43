"""Tell where a record that is produced would come a second time: a log cannot be asked for a key."""

from collections.abc import Iterable

from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import Cause, Finding, Verdict

_NEVER_COMMITTED = (Cause.NEVER_PRODUCED, Cause.ABORTED)
"""The causes by which no reader of what is committed can have had the record."""


class SecondCopies:
    """The topics behind those that are produced to, by what the pipeline and the findings of some keys say of them."""

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding]) -> None:
        """`findings`: all of their keys."""
        self._pipeline = pipeline
        targets = {hop.name: hop.target for hop in pipeline.hops}
        self._strangers = {
            (targets.get(one.hop), one.key_hash) for one in findings if one.verdict is Verdict.UNEXPECTED
        }

    def reason(self, topic: str, finding: Finding) -> str | None:
        """Return why the record of a key that a topic lacks is not produced to it, or None."""
        behind = self._pipeline.topics_behind(topic)
        holding = [name for name in behind if (name, finding.key_hash) in self._strangers]
        if holding:
            return (
                f"twice: {holding[0]} is filled from {topic}, holds the key without it, and would get it a second "
                "time; send the record by hand to who else lacks it"
            )
        if behind and finding.cause not in _NEVER_COMMITTED:
            return (
                f"twice: {behind[0]} is filled from {topic}, and may have had the record before {topic} lost it "
                f"({finding.cause.value}); look for the key there, and send the record by hand where it lacks it"
            )
        return None
