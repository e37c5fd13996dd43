"""Describe why an action of a repair plan is not done, or why a finding is not repaired: a code and a text.

The journal, the receipts in target databases and people get both as one text, which `Refusal.of_text` reads back.
"""

from dataclasses import dataclass
from enum import StrEnum

from makewhole.model.verdict import Finding


class RefusalCode(StrEnum):
    """Name the kinds of refusals. Each is the word, or words, that their texts begin with, before a colon."""

    STALE = "stale"
    ARRIVED = "arrived"
    ERASED = "erased"
    """The target is not what was judged: it changed, it is as it should be by now, or it was deleted."""

    UNFIT = "unfit"
    TWICE = "twice"
    """The write would do harm: its target takes it not as it is, or a reader would get it a second time."""

    NOT_KNOWN = "not known"
    DISPUTED = "disputed"
    CONFLICT = "conflict"
    IN_DOUBT = "in doubt"
    """The right value is not certain: nothing shows it, another finding denies it, the source has several values, or
    a prepared transaction may hold the key."""

    ACCEPTED = "accepted"
    KEPT = "kept"
    """The rows of the key stay: a person accepted them, or a point before them has the key."""

    OTHER = ""
    """The text begins with no such word: the remedy does not answer the finding, or its record is still to come."""


_BY_WORD = {code.value: code for code in RefusalCode if code is not RefusalCode.OTHER}


@dataclass(frozen=True)
class Refusal:
    """Hold why one action is not done, or one finding is not repaired."""

    code: RefusalCode
    text: str

    def __str__(self) -> str:
        """Return the text for people, as the journal and the receipts keep it."""
        return f"{self.code}: {self.text}" if self.code else self.text

    @classmethod
    def of_text(cls, text: str) -> "Refusal":
        """Read a text as `str` gives it. One that begins with no code is `OTHER`."""
        word, colon, rest = text.partition(": ")
        code = _BY_WORD.get(word) if colon else None
        return cls(RefusalCode.OTHER, text) if code is None else cls(code, rest)


def refusal_by_dispute(finding: Finding, window: int | None, ends: tuple[str, str]) -> Refusal:
    """Return why a value is not carried on from one point to another (`ends`), with the finding that disputes it.
    `window`: its window, if it is another one."""
    of_window = "" if window is None else f" in window {window}"
    return Refusal(
        RefusalCode.DISPUTED,
        f"{finding.hop} calls this key {finding.verdict.value} ({finding.cause.value}){of_window}, and "
        f"what {ends[0]} has of it is not carried on to {ends[1]}; settle that finding first (`makewhole "
        "explain` shows what each point holds), then run this window again",
    )


def refusal_by_acceptance(hop: str) -> Refusal:
    """Return why the rows of a key stay as they are by what a person said of the finding of a hop."""
    _, _, target = hop.partition("→")
    return Refusal(
        RefusalCode.ACCEPTED,
        f"a person accepted what {hop} says of this key, and its rows in {target} stay as they are; take "
        "that word back (`makewhole accept --revoke ID`), or accept this finding, too",
    )
