"""Order a journey by time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.journal.key_history import Judgement, KeyAction
from makewhole.journey.causes import told
from makewhole.journey.copies import JourneyCopy
from makewhole.journey.trace import Journey, Stop
from makewhole.model.pipeline import PointKind, Remedy

_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event of a journey. `where` is a point or a hop; `time` None: nobody wrote down when."""

    time: datetime | None
    kind: str
    where: str
    text: str
    window: int | None = None
    revision: int | None = None


def events(journey: Journey) -> list[Event]:
    """Return all events by time; those without a time come last, each kind in the order of the pipeline."""
    found = [event for stop in journey.stops for event in _of_stop(stop, replays_of(journey))]
    found += [event for item in journey.judgements for event in _of_judgement(item)]
    found += [event for deed in journey.deeds for event in _of_deed(deed)]
    return sorted(found, key=lambda event: event.time or _LAST)


def replays_of(journey: Journey) -> set[str]:
    """Return the plans that may have written the key to a topic, by the journal: a header alone proves nothing."""
    writing = (Remedy.REDELIVER.value, Remedy.PRODUCE.value)
    return {deed.plan for deed in journey.deeds if deed.remedy in writing and deed.outcome != "refused"}


def _of_stop(stop: Stop, replays: set[str]) -> Iterator[Event]:
    for copy in stop.copies:
        yield Event(
            time=copy.time,
            kind="record" if stop.kind is PointKind.TOPIC else "row",
            where=stop.point,
            text=record_text(copy, replays) if stop.kind is PointKind.TOPIC else f"{stop.system} {copy.place}",
            window=copy.window,
            revision=copy.revision,
        )


def record_text(copy: JourneyCopy, replays: set[str]) -> str:
    """Describe a record in words: position, producer, and whether it is aborted, a tombstone or a replay."""
    said = copy.identity
    parts = [f"partition {said['partition']} offset {said['offset']}, leader epoch {said['leader_epoch']}"]
    if (said["producer_id"] if said["producer_id"] is not None else -1) < 0:
        parts.append("no producer id")
    else:
        parts.append(f"producer {said['producer_id']} epoch {said['producer_epoch']} sequence {said['sequence']}")
    if said["is_aborted"]:
        parts.append("aborted")
    elif said["is_transactional"]:
        parts.append("committed")
    if said.get("is_tombstone"):
        parts.append("a tombstone")
    plan = said["replay_plan"]
    if plan is not None:
        parts.append(f"replayed by plan {plan}" if plan in replays else f"names plan {plan}, which did not replay it")
    return ", ".join(parts)


def _of_judgement(item: Judgement) -> Iterator[Event]:
    yield _about(item, item.judged_at, "judged", told(item.verdict, item.cause))
    if item.outcome is not None:
        outcome = item.outcome + (f": {item.reason}" if item.reason else "")
        yield _about(item, item.verified_at or item.judged_at, "outcome", outcome)


def _about(item: Judgement, time: datetime | None, kind: str, text: str) -> Event:
    return Event(time=time, kind=kind, where=item.hop, text=text, window=item.window, revision=item.revision)


def _of_deed(deed: KeyAction) -> Iterator[Event]:
    state = f"; the plan is {deed.plan_state}" + (f": {deed.plan_reason}" if deed.plan_reason else "")
    yield _by(deed, deed.frozen_at, "planned", f"{deed.remedy}, action {deed.seq} of plan {deed.plan}{state}")
    if deed.decision is not None:
        by = f" by {deed.decided_by}" if deed.decided_by else ""
        yield _by(deed, deed.decided_at, "decided", f"approval {deed.decision.replace('_', ' ')}{by}")
    if deed.outcome == "refused":
        yield _by(deed, deed.done_at or deed.decided_at or deed.frozen_at, "refused", deed.reason or "no reason given")
    elif deed.outcome is not None:
        receipt = "" if deed.chunk is None else f", chunk {deed.chunk}, receipt {deed.receipt}"
        yield _by(deed, deed.done_at, "done", f"{deed.remedy}{receipt}")


def _by(deed: KeyAction, time: datetime | None, kind: str, text: str) -> Event:
    return Event(time=time, kind=kind, where=deed.target, text=text, window=deed.window, revision=deed.revision)
