"""Keep what was sent to people through each channel of a pipeline, so that nothing is sent twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from makewhole.journal.statements import storable
from makewhole.sql import PgConnection, records, statements_of

_run = statements_of("notice")


@dataclass(frozen=True, kw_only=True)
class SentNotice:
    """The notice that was last sent of a subject. `fingerprint` is over all that was said of it, `said` its first
    line."""

    subject: str
    fingerprint: str
    said: str
    first_said_at: datetime
    said_at: datetime


@dataclass(frozen=True, kw_only=True)
class FailingChannel:
    """A channel through which nothing can be sent, and why."""

    pipeline: str
    channel: str
    reason: str
    since: datetime


def lock(journal: PgConnection, pipeline: str, channel: str) -> bool:
    """Lock a channel until the transaction ends; False where another transaction has it.

    Its row is committed first: a second one that would add it, too, would wait for the end of the first.
    """
    _run(journal, "add_channel", pipeline=pipeline, channel=channel)
    journal.commit()
    return bool(_run(journal, "lock_channel", pipeline=pipeline, channel=channel))


def sent(journal: PgConnection, pipeline: str, channel: str) -> list[SentNotice]:
    """Return what was sent through a channel and is not over, or is over and was not yet said to be; oldest first."""
    return records(SentNotice, _run(journal, "sent", pipeline=pipeline, channel=channel))


def note(journal: PgConnection, pipeline: str, channel: str, notice: SentNotice) -> None:
    """Write that a subject was sent."""
    _run(
        journal,
        "note",
        pipeline=pipeline,
        channel=channel,
        subject=notice.subject,
        fingerprint=notice.fingerprint,
        said=storable(notice.said),
        at=notice.said_at,
    )


def forget(journal: PgConnection, pipeline: str, channel: str, subjects: Sequence[str]) -> None:
    """Remove subjects that are over."""
    _run(journal, "forget", pipeline=pipeline, channel=channel, subjects=list(subjects))


def note_outcome(journal: PgConnection, pipeline: str, channel: str, reason: str | None) -> None:
    """Write why nothing could be sent through a channel; None: something was."""
    _run(journal, "failed", pipeline=pipeline, channel=channel, reason=None if reason is None else storable(reason))


def failing(journal: PgConnection) -> list[FailingChannel]:
    """Return the channels through which nothing can be sent, the longest first."""
    return records(FailingChannel, _run(journal, "failing"))
