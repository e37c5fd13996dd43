"""Read what older windows wrote of the keys of a hop."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.journal.statements import scope
from makewhole.model.hops import Hop
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, statements_of

_run = statements_of("older_result")

MET_FAR_AHEAD = "met_far_ahead"
"""The name in the files of a result of the number of keys whose rows the window met, and whose record is far ahead."""


@dataclass(frozen=True, kw_only=True)
class CertifiedFiles:
    """The files of a hop's result in a certified revision of a window: those that reconcile wrote, the file of the keys
    that were repaired, and the files by bucket of the two slices, where clean keys are known by them."""

    number: int
    revision: int
    end: datetime
    files: Mapping[str, Any]
    repaired: str | None
    source: Mapping[str, Sequence[str]]
    target: Mapping[str, Sequence[str]]


def certified_files(journal: PgConnection, window: Window, hop: Hop, numbers: Collection[int]) -> list[CertifiedFiles]:
    """Return the files of the newest certified revisions of windows on a hop, oldest first; of this window of those
    before it alone."""
    before = {"last_before": window.last_before}
    points = {"hop": hop.name, "source": hop.source, "target": hop.target}
    rows = _run(journal, "certified_files", **scope(window), **points, **before, numbers=sorted(numbers))
    return [record(CertifiedFiles, row, source=row.source or {}, target=row.target or {}) for row in rows]


@dataclass(frozen=True, kw_only=True)
class MetAloneFiles:
    """The files by bucket of the keys whose rows a certified revision of a window met without a record.
    `has_far_ahead`: the record of some has a time so far ahead that any later window may have it."""

    number: int
    end: datetime
    has_far_ahead: bool
    files: Mapping[str, str]


def certified_met_alone(journal: PgConnection, window: Window, hop: str, moment: datetime) -> list[MetAloneFiles]:
    """Return those of the certified windows before one that end after a moment, or have any far ahead, oldest first."""
    rows = _run(journal, "certified_met_alone", **scope(window), hop=hop, moment=moment)
    return [record(MetAloneFiles, row, files=row.files or {}) for row in rows]


@dataclass(frozen=True, kw_only=True)
class UnmatchedRows:
    """The number of keys whose rows a window met without a record: those that its findings name (`named`), and those
    from before the baseline or with a record far ahead (`unnamed`). `finding_count`: the number of its unexpected and
    undecidable findings, of which the journal may have a part. `files` of all of these keys by bucket; None where
    it read the target whole."""

    number: int
    revision: int
    named: int
    unnamed: int
    finding_count: int
    files: Mapping[str, str] | None


def unmatched_rows(journal: PgConnection, window: Window, hop: str) -> list[UnmatchedRows]:
    """Return the windows before one that met such keys on a hop, in their newest compared revisions, oldest first."""
    return records(UnmatchedRows, _run(journal, "unmatched_rows", **scope(window), hop=hop))
