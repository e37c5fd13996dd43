"""Order a journey by time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from makewhole.journal.acceptances import KeyWord
from makewhole.journal.key_history import Judgement, KeyAction
from makewhole.journey.causes import explained_verdict
from makewhole.journey.copies import JourneyCopy
from makewhole.journey.trace import Journey, Stop
from makewhole.model.acceptance import AcceptanceState
from makewhole.model.hops import Remedy
from makewhole.model.points import PointKind
from makewhole.window.readers.copier_text import commits_text
from makewhole.window.readers.sink_text import SINK, sink_evidence_text

_LAST = datetime.max.replace(tzinfo=UTC)
_AHEAD = timedelta(days=1)

_RECORD, _ROW = "record", "row"
COPIES = frozenset((_RECORD, _ROW))
"""The kinds of events that are copies of the key."""

Replays = Mapping[str, frozenset[str]]
"""Plan → the positions (`partition:offset`) at which it wrote the key."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event of a journey. `where` is a point or a hop; `time` None: the moment was not recorded."""

    time: datetime | None
    kind: str
    where: str
    text: str
    window: int | None = None
    revision: int | None = None


def events(journey: Journey) -> list[Event]:
    """Return all events by time; those without a time come last, each kind in the order of the pipeline."""
    unsorted = [event for stop in journey.stops for event in _of_stop(stop, replays_of(journey))]
    unsorted += [event for item in journey.judgements for event in _of_judgement(item)]
    unsorted += [event for action in journey.actions for event in _of_action(action)]
    unsorted += [event for word in journey.words for event in _of_word(word)]
    return sorted(unsorted, key=lambda event: event.time or _LAST)


def replays_of(journey: Journey) -> Replays:
    """Return the plans that may have written the key to a topic, by the journal: a header alone proves nothing."""
    writing = (Remedy.REDELIVER.value, Remedy.PRODUCE.value)
    replays: dict[str, frozenset[str]] = {}
    for action in journey.actions:
        if action.remedy in writing and action.outcome != "refused":
            positions = {action.position} if action.position is not None else set()
            replays[action.plan] = replays.get(action.plan, frozenset()) | positions
    return replays


def is_replay(copy: JourneyCopy, replays: Replays) -> bool:
    """Return whether compensation wrote the record: its plan is known, and it stands where that one wrote."""
    plan = copy.identity.get("replay_plan")
    return plan is not None and copy.place in replays.get(plan, frozenset())


def _of_stop(stop: Stop, replays: Replays) -> Iterator[Event]:
    for copy in stop.copies:
        yield Event(
            time=copy.time,
            kind=_RECORD if stop.kind is PointKind.TOPIC else _ROW,
            where=stop.point,
            text=record_text(copy, replays) if stop.kind is PointKind.TOPIC else row_text(stop, copy),
            window=copy.window,
            revision=copy.revision,
        )


def row_text(stop: Stop, copy: JourneyCopy) -> str:
    """Describe a row in words: its table and place, and whether it has a time that no window reaches."""
    is_ahead = copy.time is not None and copy.time > datetime.now(UTC) + _AHEAD
    return f"{stop.system} {copy.place}" + (", no window reaches its time" if is_ahead else "")


def record_text(copy: JourneyCopy, replays: Replays) -> str:
    """Describe a record in words: position, producer, and whether it is aborted, a tombstone or a replay."""
    identity = copy.identity
    parts = [f"partition {identity['partition']} offset {identity['offset']}, leader epoch {identity['leader_epoch']}"]
    if (identity["producer_id"] if identity["producer_id"] is not None else -1) < 0:
        parts.append("no producer id")
    else:
        parts.append(
            f"producer {identity['producer_id']} epoch {identity['producer_epoch']} sequence {identity['sequence']}"
        )
    if identity["is_aborted"]:
        parts.append("aborted")
    elif identity["is_transactional"]:
        parts.append("committed")
    if identity.get("is_tombstone"):
        parts.append("a tombstone")
    plan = identity["replay_plan"]
    if plan is not None:
        is_ours = is_replay(copy, replays)
        parts.append(f"replayed by plan {plan}" if is_ours else f"names plan {plan}, which did not replay it")
    return ", ".join(parts)


def _of_judgement(item: Judgement) -> Iterator[Event]:
    commits = (item.evidence or {}).get("copier_commits")
    how = f"; its copier's group committed {commits_text(commits)}" if commits else ""
    sink = (item.evidence or {}).get(SINK)
    how += f"; its sink: {sink_evidence_text(sink)}" if sink else ""
    yield _about(item, item.judged_at, "judged", explained_verdict(item.verdict, item.cause) + how)
    if item.outcome is not None:
        outcome = item.outcome + (f": {item.reason}" if item.reason else "")
        yield _about(item, item.verified_at or item.judged_at, "outcome", outcome)


def _about(item: Judgement, time: datetime | None, kind: str, text: str) -> Event:
    return Event(time=time, kind=kind, where=item.hop, text=text, window=item.window, revision=item.revision)


def _of_action(action: KeyAction) -> Iterator[Event]:
    state = f"; the plan is {action.plan_state}" + (f": {action.plan_reason}" if action.plan_reason else "")
    yield _by(action, action.frozen_at, "planned", f"{action.remedy}, action {action.seq} of plan {action.plan}{state}")
    if action.decision is not None:
        by = f" by {action.decided_by}" if action.decided_by else ""
        yield _by(action, action.decided_at, "decided", f"approval {action.decision.replace('_', ' ')}{by}")
    if action.outcome == "refused":
        yield _by(
            action,
            action.done_at or action.decided_at or action.frozen_at,
            "refused",
            action.reason or "no reason given",
        )
    elif action.outcome is not None:
        receipt = "" if action.chunk is None else f", chunk {action.chunk}, receipt {action.receipt}"
        yield _by(action, action.done_at, "done", f"{action.remedy}{receipt}")


def _by(action: KeyAction, time: datetime | None, kind: str, text: str) -> Event:
    return Event(time=time, kind=kind, where=action.target, text=text, window=action.window, revision=action.revision)


def _of_word(word: KeyWord) -> Iterator[Event]:
    until = "" if word.until is None else f" until {word.until:%Y-%m-%d %H:%M} UTC"
    name = f"acceptance {word.acceptance} of {word.verdict}{until}"
    yield _said(word, word.asked_at, "asked", f"{name}, by {word.asked_by}: {word.reason}")
    if word.decided_at is not None:
        is_no = word.state == AcceptanceState.REJECTED.value
        by = f"by {word.decided_by}" if word.decided_by else "without an answer in time"
        yield _said(
            word,
            word.decided_at,
            "rejected" if is_no else "accepted",
            f"{name}, {by}",
        )
    if word.ended_because is not None:
        yield _said(word, word.ended_at, "open again", f"{name}: {word.ended_because}")


def _said(word: KeyWord, time: datetime | None, kind: str, text: str) -> Event:
    return Event(time=time, kind=kind, where=word.hop, text=text, window=word.window, revision=word.revision)
