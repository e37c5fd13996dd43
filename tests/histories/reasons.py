"""Know the reasons of windows that are not certified for which the runbook has a way out."""

import re
from collections.abc import Sequence

VERDICTS: Sequence[str] = (
    "… missing, … allowed",
    "… duplicate, … allowed",
    "… mismatched, … allowed",
    "… unexpected, … allowed",
    "… conflict, … allowed",
    "… undecidable, … allowed",
    "nothing was judged: … pending, … undecidable",
)
"""List what the gate says of a hop, as the runbook has it: `…` for what differs."""

PLANS: Sequence[str] = (
    "The plan was refused: … actions are more than the limit of …",
    "The plan was refused: … keys are more than the share of … of the window's … keys",
    "The plan was rejected: rejected by …",
)
"""List what stands behind that where a plan did not run."""

INCIDENTS: Sequence[str] = (
    "… were deleted before they could be read",
    "group … has committed no offset in …, where records wait from offset … on",
    "group … has committed offset … of …, which is … its log (…), and records wait from offset … on",
)
"""List what happened to a log or a group, so that it cannot be known."""

OVERTAKEN = "… keys are still in flight, and window …, which would have judged them, was compared already"

_HOP = r"\S+→\S+"


def is_known(reason: str) -> bool:
    """Return whether a person finds in the runbook what to do about a reason, in each of its parts."""
    return any(re.fullmatch(pattern, reason) for pattern in (_OF_GATE, _OF_INCIDENTS, _any_of([OVERTAKEN])))


def _any_of(forms: Sequence[str]) -> str:
    """Return the pattern of texts that begin with one of the forms, up to the next part of a reason."""
    texts = ("[^;]+?".join(re.escape(part) for part in form.split("…")) for form in forms)
    return f"(?:{'|'.join(texts)})(?:[;:,] [^;]+)?"


def _exactly(forms: Sequence[str]) -> str:
    """Return the pattern of texts that are one of the forms, numbers in the places of `…`."""
    return "(?:" + "|".join(r"[\d,]+(?: keys?)?".join(re.escape(p) for p in form.split("…")) for form in forms) + ")"


_VERDICT = f"{_HOP}: {_exactly(VERDICTS)}"
_OF_GATE = rf"(?:not proven: )?{_VERDICT}(?:; {_VERDICT})*(?:\. {_any_of(PLANS)})?"
# The incident itself says what would settle it: without such a sentence a person cannot act on it.
_REMEDY = r"\. [A-Z].{40,}"
_OF_INCIDENTS = rf"(?:partial|not proven): {_any_of(INCIDENTS)}(?:; {_any_of(INCIDENTS)})*{_REMEDY}"
