"""Read the rows of accepted keys in the tables of a pipeline, to see whether they are what they were."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from makewhole.compensation.verification.committed_since import CopiesByKey
from makewhole.compensation.verification.store_rows import read_rows
from makewhole.model.acceptance import digest_of
from makewhole.model.pipeline import TablePoint
from makewhole.model.verdict import Finding, Verdict
from makewhole.window.context import WindowContext

_KEYS_AT_ONCE = 5_000


@dataclass(frozen=True, kw_only=True)
class KeyRows:
    """The rows of some keys, by table point. `held` is over the compared values of a key's rows in all tables."""

    by_point: Mapping[str, CopiesByKey]

    def held(self, key: str) -> str:
        """Return the SHA-256 of what the tables have of a key: of each row its values, its version and its filters."""
        return digest_of({point: sorted(map(_values, rows.get(key, ()))) for point, rows in self.by_point.items()})

    def changed_since(self, context: WindowContext, finding: Finding) -> str | None:
        """Return how the rows of a finding's key differ from what was judged; None: they do not, as far as the evidence
        says what was there."""
        hop = context.pipeline.hop(finding.hop)
        if hop.target not in self.by_point:
            return None
        rows = self.by_point[hop.target].get(finding.key, [])
        if finding.verdict in (Verdict.MISSING, Verdict.VANISHED):
            return f"{hop.target} has it by now" if rows else None
        if not rows:
            return None if finding.verdict is Verdict.CONFLICT else f"{hop.target} has it no more"
        judged = finding.evidence.get("columns", {}) if finding.verdict is Verdict.MISMATCHED else {}
        differs = judged and not any(
            all(row.get(f"c:{name}") == sides["target"] for name, sides in judged.items()) for row in rows
        )
        return f"{hop.target} has other values of it than were judged" if differs else None


def read_key_rows(context: WindowContext, keys: Sequence[str]) -> KeyRows:
    """Read the rows of some keys in every table of the pipeline."""
    tables = [name for name, point in context.pipeline.points.items() if isinstance(point, TablePoint)]
    found: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in tables}
    remaining = iter(dict.fromkeys(keys))
    while some := list(islice(remaining, _KEYS_AT_ONCE)):
        for name in tables:
            found[name].update(read_rows(context, name, some))
    return KeyRows(by_point=found)


def _values(row: Mapping[str, Any]) -> list[str]:
    """Return the compared values, the version and the filters of a row as texts that can be put in order."""
    names = sorted(name for name in row if name.startswith("c:"))
    return [repr(row[name]) for name in (*names, "version")] + sorted(row["excluded_by"] or ())
