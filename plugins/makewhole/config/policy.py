"""Read the tolerances, limits, approval rules and time limits of a pipeline file."""

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta

from makewhole.config import values
from makewhole.config.tree import Section
from makewhole.model.gate import Gate
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Approval, Limits, Pipeline
from makewhole.model.retention import Keep, Kept
from makewhole.model.time_limits import TimeLimits
from makewhole.model.verdict import GAPS

_SHORTEST_KEPT = timedelta(days=2)
"""Longer than any step, and the time for which the key index keeps files that may still be read."""
_TAKING_AWAY = (Remedy.QUARANTINE, Remedy.REVERSE)


def below(section: Section | None, key: str, *known: str) -> Section | None:
    """Return the section under an optional key, its unknown keys noted."""
    place = section.get(key) if section else None
    inner = place.section() if place else None
    if inner is not None:
        inner.only(*known)
    return inner


def read_gate(top: Section) -> Gate:
    """Return the gate's tolerances; nothing is tolerated that the file does not name."""
    gate = below(top, "gate", "tolerance", "allow_empty")
    tolerable = (*(verdict.value for verdict in GAPS), "undecodable")
    tolerance = below(gate, "tolerance", *tolerable, "pending", "vanished")
    quiet = gate.get("allow_empty") if gate else None
    return Gate(
        **{name: _whole(tolerance, name, values.at_least(0), 0) for name in tolerable},
        pending=_whole_or_any(tolerance, "pending"),
        vanished=_whole_or_any(tolerance, "vanished"),
        allow_empty=bool(quiet.boolean()) if quiet else False,
    )


def _whole_or_any(tolerance: Section | None, key: str) -> int | None:
    place = tolerance.get(key) if tolerance else None
    return place.whole(values.at_least(0)) if place else None


def read_pending_max_age(top: Section) -> timedelta:
    """Return how long a key may stay pending before its absence is a loss."""
    pending = below(top, "pending", "max_age")
    place = pending.get("max_age") if pending else None
    return (place.text(values.positive_duration) if place else None) or Pipeline.pending_max_age


def read_history(top: Section, least: timedelta) -> timedelta | None:
    """Return how far back the key index knows the keys of topics, `least` at least; None: for ever."""
    place = top.get("history")
    history = place.text(values.history) if place else None
    if place is not None and history is not None and history < least:
        together = values.written_duration(least)
        place.complain(
            f"is less than `late` and `pending.max_age` together ({together}), as far back as keys may be late",
            f"Write at least '{together}', or leave the line out: then keys are known for ever",
        )
    return history


def read_keep(top: Section, least: timedelta) -> Keep:
    """Return how long what makewhole writes is kept: archives as far back as keys may be late (`least`), files of
    attempts longer than an attempt may take."""
    section = below(top, "keep", *(kind.value for kind in Kept))
    kept: dict[str, timedelta | None] = {}
    for kind in Kept:
        place = section.get(kind.value) if section else None
        time = place.text(values.positive_duration) if place else None
        shortest = max(least, _SHORTEST_KEPT) if kind is Kept.ARCHIVES else _SHORTEST_KEPT
        if place is not None and time is not None and time < shortest:
            why = "`late` and `pending.max_age` together" if shortest > _SHORTEST_KEPT else "what may still be at work"
            written = values.written_duration(shortest)
            place.complain(
                f"is less than {written}, as far back as {why} may need them",
                f"Write at least '{written}', or leave the line out: without it they are kept for ever",
            )
        kept[kind.value] = time
    return Keep(**kept)


def note_rows_taken_away(top: Section, pipeline: Pipeline) -> None:
    """Note remedies that take rows away for want of a record, where the record may be known no more."""
    place = top.get_quietly("history")
    for hop in pipeline.hops if place is not None else ():
        remedy = hop.remedies.unexpected
        if place is None or remedy not in _TAKING_AWAY or not pipeline.forgets_records_of(hop.target):
            continue
        place.complain(
            f"{hop.name} takes `unexpected: {remedy.value}`: the record of such a row may be in a window that is known "
            "no more, where a loader gave the row a new time",
            f"Write 'unexpected: report' in the compensation of {hop.name}, or take `history` out: then keys are known "
            "for ever",
        )


def read_limits(compensation: Section | None) -> Limits:
    """Return the limits over which a plan is refused."""
    section = below(compensation, "limits", "actions", "share", "records_per_second")
    share = section.get("share") if section else None
    number = share.number(values.share) if share else None
    default = Limits()
    return Limits(
        actions=_whole(section, "actions", values.at_least(0), default.actions),
        share=default.share if number is None else number,
        records_per_second=_whole(section, "records_per_second", values.at_least(1), default.records_per_second),
    )


def read_approval(compensation: Section | None) -> Approval:
    """Return when a plan waits for a person, for whom, and how long."""
    section = below(compensation, "approval", "above_actions", "by", "expires", "four_eyes")
    by = section.get("by") if section else None
    expires = section.get("expires") if section else None
    four_eyes = section.get("four_eyes") if section else None
    default = Approval()
    return Approval(
        above_actions=_whole(section, "above_actions", values.at_least(0), default.above_actions),
        by=(by.words(values.approver) or ()) if by else default.by,
        expires=(expires.text(values.positive_duration) or default.expires) if expires else default.expires,
        four_eyes=bool(four_eyes.boolean()) if four_eyes else default.four_eyes,
    )


def read_time_limits(top: Section) -> TimeLimits:
    """Return the longest time that a try of each step may take."""
    default = TimeLimits()
    section = below(top, "time_limits", *(item.name for item in fields(TimeLimits)))
    limits: dict[str, timedelta] = {}
    for item in fields(TimeLimits):
        place = section.get(item.name) if section else None
        limit = place.text(values.time_limit) if place else None
        limits[item.name] = getattr(default, item.name) if limit is None else limit
    return TimeLimits(**limits)


def _whole(section: Section | None, key: str, parse: Callable[[str], int], default: int) -> int:
    place = section.get(key) if section else None
    value = place.whole(parse) if place else None
    return default if value is None else value
