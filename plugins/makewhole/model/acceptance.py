"""Describe a person's word on findings that cannot, or shall not, be repaired: they are accepted as they are."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from makewhole.model.verdict import REPAIRABLE, Cause, Finding, Verdict

ACCEPTED = "accepted"
"""The outcome of a finding that a standing acceptance names."""

ACCEPTABLE = REPAIRABLE
"""The verdicts that a person may accept: what is known, and wrong."""

_ID_DIGITS = 12
_ID = re.compile(rf"[0-9a-f]{{{_ID_DIGITS}}}")


class AcceptanceState(StrEnum):
    """The states of an acceptance. Only `standing` accepts, and only until its time is over."""

    AWAITING_APPROVAL = "awaiting_approval"
    STANDING = "standing"
    REJECTED = "rejected"
    REVOKED = "revoked"


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """Some findings of a revision of a window, and the person's word on them. `findings`: how many were asked for.

    `sha256` is over all that was asked. `until` None: for good. `decided_by` says yes or no; `has_expired`: the time is
    over, by the journal's clock.
    """

    id: str
    pipeline: str
    window: int
    revision: int
    sha256: str
    reason: str
    until: datetime | None
    findings: int
    asked_by: str
    asked_at: datetime
    state: AcceptanceState
    decided_by: str | None = None
    decided_at: datetime | None = None
    revoked_by: str | None = None
    revoked_at: datetime | None = None
    revoked_because: str | None = None
    has_expired: bool = False

    @property
    def stands(self) -> bool:
        """Return whether its findings are accepted now, but for those that are open again."""
        return self.state is AcceptanceState.STANDING and not self.has_expired


@dataclass(frozen=True, kw_only=True)
class AcceptedFinding:
    """A finding of an acceptance: what was judged of its key (`fingerprint`), and what the tables held (`held`)."""

    hop: str
    key: str
    key_hash: str
    verdict: Verdict
    cause: Cause
    fingerprint: str
    held: str


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The findings that a person names: by their ids or keys, by a cause, or all that are open."""

    names: tuple[str, ...] = ()
    cause: Cause | None = None

    @property
    def is_all(self) -> bool:
        return not self.names and self.cause is None

    def takes(self, finding: Finding) -> bool:
        """Return whether it names a finding."""
        if self.names:
            return finding_id(finding.hop, finding.key_hash) in self.names or finding.key in self.names
        return self.cause is None or finding.cause is self.cause

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {"findings": list(self.names), "cause": None if self.cause is None else self.cause.value}


def finding_id(hop: str, key_hash: str) -> str:
    """Return the name of a finding in its window: 12 hexadecimal digits, the same in every revision."""
    return hashlib.sha256(f"{hop}\0{key_hash}".encode()).hexdigest()[:_ID_DIGITS]


def by_ids(selection: Selection, findings: Iterable[Finding]) -> Selection:
    """Return a selection that names the findings it takes by their ids, where it names any: what is kept of it has no
    key."""
    if not selection.names:
        return selection
    return replace(selection, names=tuple(sorted({finding_id(finding.hop, finding.key_hash) for finding in findings})))


def is_finding_id(name: str) -> bool:
    """Return whether a name has the form of an id, and not only that of a key."""
    return _ID.fullmatch(name) is not None


def fingerprint(finding: Finding) -> str:
    """Return the SHA-256 of what was judged of a key: the verdict, how often each side has it, its records, and its
    values. The cause, and where a table keeps a row, may change while nothing else does."""
    evidence = finding.evidence
    known = {
        "verdict": finding.verdict.value,
        **{name: evidence.get(name) for name in ("in_source", "row_hash", "source_copies", "target_copies")},
        **{name: evidence.get(name) for name in ("values", "columns")},
        "conflict": {side: [copy["values"] for copy in held] for side, held in evidence.get("conflict", {}).items()},
        **{side: [_record(copy) for copy in evidence.get(side, ())] for side in ("source", "target")},
    }
    return digest_of(known)


def digest_of(document: Any) -> str:
    """Return the SHA-256 of a document as canonical JSON, in hexadecimal digits."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _record(copy: Mapping[str, Any]) -> list[Any]:
    """Return what identifies a record of a topic; nothing of a row."""
    names = ("partition", "offset", "aborted", "tombstone") if "offset" in copy else ("version",)
    return [copy.get(name) for name in names]
