"""Find the findings that dispute the value by which a repair goes, and why it is not carried on."""

from collections.abc import Mapping
from typing import Any

from makewhole.model.verdict import Cause, Finding, Verdict


def disputed_reason(finding: Finding, window: int | None, ends: tuple[str, str]) -> str:
    """Return why a value is not carried on from one point to another (`ends`), with the finding that disputes it.
    `window`: its window, if it is another one."""
    of_window = "" if window is None else f" in window {window}"
    return (
        f"disputed: {finding.hop} calls this key {finding.verdict.value} ({finding.cause.value}){of_window}, and "
        f"what {ends[0]} has of it is not carried on to {ends[1]}; settle that finding first (`makewhole "
        "explain` shows what each point holds), then run this window again"
    )


def accepted_reason(hop: str) -> str:
    """Return why the rows of a key stay as they are by what a person said of the finding of a hop."""
    _, _, target = hop.partition("→")
    return (
        f"accepted: a person accepted what {hop} says of this key, and its rows in {target} stay as they are; take "
        "that word back (`makewhole accept --revoke ID`), or accept this finding, too"
    )


def says_nothing_of_values(finding: Finding) -> bool:
    """Return whether a finding of another window only could not know if the key was there: a repair has its record."""
    return finding.verdict is Verdict.UNDECIDABLE and not finding.evidence.get("target_copies")


def disputes_since(before: Mapping[str, Any], finding: Finding) -> bool:
    """Return whether an open finding of another window, made after the plan, disputes the value by which an action
    goes. `before`: the field `DISPUTED_BY` of the action."""
    is_at_end = finding.hop in before.get("ends", ())
    is_at_start = finding.cause is Cause.SOURCE_CONTRADICTS and finding.hop in before.get("starts", ())
    if not is_at_end and not is_at_start:
        return False
    return finding.verdict is Verdict.UNDECIDABLE if before.get("doubts") else not says_nothing_of_values(finding)
