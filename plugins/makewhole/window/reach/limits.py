"""List what the proof of a window cannot exclude, from what its steps committed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from makewhole.journal import incidents
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.hops import Reach
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import NOT_NUMBERED, counted
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.reach.chains import point_chains, reach_of


class LimitKind(StrEnum):
    """The kinds of things that a certificate cannot exclude."""

    NOT_IN_LEDGER = "not_in_ledger"
    NOT_IN_LOG = "not_in_log"  # never sent, or acknowledged and lost before it was read
    NOT_JOINED = "not_joined"  # a topic alone: what reads it may lose anything
    NOT_NUMBERED = "not_numbered"  # records without the sequence by which they are known
    LEADER_CHANGED = "leader_changed"  # it may have taken acknowledged records along; accepted by `reach: log`
    ABORTED = "aborted"  # a transaction that was ended wrongly looks like one that was intended to abort
    COMPACTED = "compacted"
    BEFORE_BASELINE = "before_baseline"
    OLDER_DUPLICATES = "older_duplicates"  # the key index knows no older keys: `history`
    TIMES_AHEAD = "times_ahead"  # rows with times that no window reaches
    NEVER_COMPARED = "never_compared"  # columns of which neither end of a hop has ever had a value
    CHANGED_ROWS = "changed_rows"  # rows of earlier windows that are not looked at again


@dataclass(frozen=True, kw_only=True)
class ProofLimit:
    """Name one thing that the proof cannot exclude. `at`: the point or hop that it is about; `count` where counted;
    `since`: the moment from which on keys are known, or the first of the times (as text) of which `until` is the
    last."""

    kind: LimitKind
    at: str
    count: int | None = None
    since: str | None = None
    until: str | None = None

    @property
    def sentence(self) -> str:
        """Return it as a sentence for people, without a full stop."""
        return _SENTENCES[self.kind](self)


def older_duplicates(since: datetime) -> str:
    """Return the sentence that the key index begins with a moment."""
    return f"a duplicate of a record from before {since.astimezone(UTC):%Y-%m-%d %H:%M} UTC would not be found"


_SENTENCES: Mapping[LimitKind, Callable[[ProofLimit], str]] = {
    LimitKind.NOT_IN_LEDGER: lambda limit: f"what the producer never wrote into {limit.at}",
    LimitKind.NOT_IN_LOG: lambda limit: (
        f"what is not in the log of {limit.at}: it was never sent, or brokers acknowledged and lost it before it was "
        "read (acks=0 or 1, an unclean election)"
    ),
    LimitKind.NOT_JOINED: lambda limit: (
        f"what the readers of {limit.at} lost or repeated: no hop leads from it to a second point"
    ),
    LimitKind.NOT_NUMBERED: lambda limit: (
        f"that {counted(limit.count or 0, 'record')} of {limit.at} without a sequence had been sent before"
    ),
    LimitKind.LEADER_CHANGED: lambda limit: (
        f"{counted(limit.count or 0, 'change')} of leader in {limit.at} that may have taken acknowledged records along"
    ),
    LimitKind.ABORTED: lambda limit: (
        f"{counted(limit.count or 0, 'record')} of aborted transactions in {limit.at}: an abort that was not intended "
        "looks like one that was"
    ),
    LimitKind.COMPACTED: lambda limit: (
        f"{counted(limit.count or 0, 'offset')} of {limit.at} that were compacted before they were read"
    ),
    LimitKind.BEFORE_BASELINE: lambda limit: (
        f"{counted(limit.count or 0, 'key')} of {limit.at} from before the baseline"
    ),
    LimitKind.TIMES_AHEAD: lambda limit: (
        f"{counted(limit.count or 0, 'row')} of {limit.at} with times that no window reaches, from {limit.since} to "
        f"{limit.until}"
    ),
    LimitKind.NEVER_COMPARED: lambda limit: (
        f"anything of {counted(limit.count or 0, 'compared column')} of {limit.at}, of which neither end has ever had "
        "a value"
    ),
    LimitKind.CHANGED_ROWS: lambda limit: (
        f"rows of {limit.at} that were changed since they were judged, with their times left as they were"
    ),
    LimitKind.OLDER_DUPLICATES: lambda limit: (
        f"in {limit.at} {older_duplicates(datetime.fromisoformat(limit.since or ''))}"
    ),
}

HISTORY_BEGINS = "history_begins"
"""The name under which a hop's result says from which moment on the keys of its topics are known."""


def history_begins_document(begins: Mapping[str, datetime | None]) -> dict[str, dict[str, str]]:
    """Return from which moments on the keys of topics are known, as a result has it; empty: from their first window."""
    known = {point: moment.astimezone(UTC).isoformat() for point, moment in begins.items() if moment is not None}
    return {HISTORY_BEGINS: known} if known else {}


def reach_document(
    journal: PgConnection, pipeline: Pipeline, window: Window, results: Mapping[str, HopResult]
) -> dict[str, Any]:
    """Return what a certificate says of the reach of a revision: by chain, whether the file accepts it, the limits."""
    manifests = snapshot_manifests.snapshots(journal, window)
    happened = incidents.of(journal, window)
    limits = [
        *_limits_of_first_points(pipeline, manifests, happened),
        *_limits_of_hops(results),
        *_limits_of_tables(happened),
    ]
    return {
        "from": reach_of(pipeline).value,
        "chains": [{"points": list(chain.points), "from": chain.reach.value} for chain in point_chains(pipeline)],
        "is_accepted": pipeline.reach is Reach.LOG,
        "cannot_exclude": [
            {"limit": limit.kind.value, "at": limit.at, "count": limit.count, "message": limit.sentence}
            for limit in limits
        ],
    }


def _limits_of_first_points(
    pipeline: Pipeline, manifests: Mapping[str, Mapping[str, Any]], happened: list[Incident]
) -> Iterator[ProofLimit]:
    alone = {point.name for point in pipeline.topics_alone}
    begun = {chain.points[0]: chain.reach for chain in point_chains(pipeline)}
    for name, reach in begun.items():
        if reach is Reach.LEDGER:
            yield ProofLimit(kind=LimitKind.NOT_IN_LEDGER, at=name)
            continue
        yield ProofLimit(kind=LimitKind.NOT_IN_LOG, at=name)
        if name in alone:
            yield ProofLimit(kind=LimitKind.NOT_JOINED, at=name)
        changes = sum(incident.may_have_lost for incident in _leader_changes(name, happened))
        accounting = manifests.get(name, {}).get("accounting", {})
        for kind, count in (
            (LimitKind.NOT_NUMBERED, manifests.get(name, {}).get(NOT_NUMBERED, 0) if name in alone else 0),
            (LimitKind.LEADER_CHANGED, changes),
            (LimitKind.ABORTED, accounting.get("aborted", 0)),
            (LimitKind.COMPACTED, accounting.get("compacted", 0)),
        ):
            if count:
                yield ProofLimit(kind=kind, at=name, count=count)


def _leader_changes(point: str, happened: list[Incident]) -> list[Incident]:
    changes = (incident for incident in happened if incident.kind is IncidentKind.LEADER_CHANGED)
    return [change for change in changes if change.point == point]


def _limits_of_hops(results: Mapping[str, HopResult]) -> Iterator[ProofLimit]:
    for hop, result in sorted(results.items()):
        if result.counts.before_baseline:
            yield ProofLimit(kind=LimitKind.BEFORE_BASELINE, at=hop, count=result.counts.before_baseline)
    begins: dict[str, str] = {}
    for result in results.values():
        begins |= result.files.get(HISTORY_BEGINS, {})
    for point, moment in sorted(begins.items()):
        yield ProofLimit(kind=LimitKind.OLDER_DUPLICATES, at=point, since=moment)


def _limits_of_tables(happened: list[Incident]) -> Iterator[ProofLimit]:
    for incident in happened:
        if incident.kind is IncidentKind.NEVER_COMPARED:
            columns = incident.detail["columns"]
            yield ProofLimit(kind=LimitKind.NEVER_COMPARED, at=incident.topic, count=len(columns))
        if incident.kind is IncidentKind.VALUES_NOT_LOOKED_AT:
            yield ProofLimit(kind=LimitKind.CHANGED_ROWS, at=incident.point)
        if incident.kind is IncidentKind.TIMES_AHEAD and incident.detail["rows"]:
            yield ProofLimit(
                kind=LimitKind.TIMES_AHEAD,
                at=incident.point,
                count=incident.detail["rows"],
                since=incident.detail["oldest"],
                until=incident.detail["newest"],
            )
