"""Describe how long what makewhole writes is kept, as a pipeline file says it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum


class Kept(StrEnum):
    """A kind of what makewhole writes and keeps. `archives`: records as they were in the log. `attempts`: files of
    attempts that died. `findings`: keys and evidence of findings. `effects`: what plans did, with receipts, payloads
    and the rows as they were before. `quarantine`: rows that plans moved aside."""

    ARCHIVES = "archives"
    ATTEMPTS = "attempts"
    FINDINGS = "findings"
    QUARANTINE = "quarantine"
    EFFECTS = "effects"


@dataclass(frozen=True, kw_only=True)
class Keep:
    """How long each kind is kept, from the end of its window, or of its plan; None: for ever."""

    archives: timedelta | None = None
    attempts: timedelta | None = None
    findings: timedelta | None = None
    quarantine: timedelta | None = None
    effects: timedelta | None = None

    def __iter__(self) -> Iterator[tuple[Kept, timedelta]]:
        """Yield the kinds that are not kept for ever, in the order in which they are removed."""
        for item in fields(self):
            kept: timedelta | None = getattr(self, item.name)
            if kept is not None:
                yield Kept(item.name), kept
