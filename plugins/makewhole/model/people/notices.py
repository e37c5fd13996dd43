"""Describe what a pipeline has sent to people, and through what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any


class Waits(StrEnum):
    """The kinds of items that wait for a person, the most urgent first: questions end by themselves, and the plan is
    rejected then; while a pipeline stands still nothing of it is checked; a repair that stopped has written a part;
    consumers of a certificate that was revoked go on as if it stood; where a self-check is red, what windows say may be
    wrong."""

    QUESTION = "question"
    REVOKED = "revoked"
    SELF_CHECK = "self_check"
    NOT_OPENED = "not_opened"
    ERROR = "error"
    REPAIR_STOPPED = "repair_stopped"
    REFUSED = "refused"
    GAPS = "gaps"
    NOT_KNOWN = "not_known"
    LATE = "late"
    NOT_SENT = "not_sent"


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A way to people: the class of a notifier of Airflow with its arguments, whose texts are templates. `kinds`: what
    is sent through it; empty: everything."""

    notifier: str
    arguments: Mapping[str, Any]
    kinds: tuple[Waits, ...] = ()

    def takes(self, kind: Waits) -> bool:
        """Return whether items of a kind are sent through this channel."""
        return not self.kinds or kind in self.kinds


@dataclass(frozen=True, kw_only=True)
class Notify:
    """The notices that a pipeline sends. `channels` by name; what still waits is sent again after `remind`.
    `certify_by`: how long after the end of its interval each window of the schedule is to be certified; None: no
    such promise."""

    channels: Mapping[str, Channel]
    remind: timedelta = timedelta(days=1)
    certify_by: timedelta | None = None
