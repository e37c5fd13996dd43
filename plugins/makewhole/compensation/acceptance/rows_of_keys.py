"""Read the rows of accepted keys in the tables of a pipeline, to see whether they are what they were."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from makewhole.compensation.verification.committed_since import CopiesByKey
from makewhole.compensation.verification.store_rows import read_rows
from makewhole.compute.indexed_keys.hop_filters import filter_places
from makewhole.model.acceptance import AcceptedFinding, digest_of
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_at
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Finding, Verdict
from makewhole.signing.mask import Mask
from makewhole.window.context import WindowContext
from makewhole.window.masks import mask_of, mask_of_rows

_KEYS_AT_ONCE = 5_000


@dataclass(frozen=True, kw_only=True)
class KeyRows:
    """The rows of some keys, by table point: of each key in the tables that the hop of its finding is joined to. `mask`
    of the values that digests of rows are over: these are kept."""

    pipeline: Pipeline
    by_point: Mapping[str, CopiesByKey]
    mask: Mask | None = None

    def held(self, finding: Finding | AcceptedFinding) -> str:
        """Return what the tables have of a finding's key as JSON: of each table the SHA-256 of its rows (`rows`: their
        values, versions and filters) and of what the file reads of them (`by`)."""
        tables = tables_joined_to(self.pipeline, finding.hop)
        contents = {name: {"by": self._read_by(name), "rows": self._digest(name, finding.key)} for name in tables}
        return json.dumps(contents, sort_keys=True, separators=(",", ":"))

    def has_changed(self, accepted: AcceptedFinding) -> bool:
        """Return whether the rows of a key are not what they were when a finding of it was accepted. A table that the
        file did not have then, or reads otherwise since, says nothing."""
        before, now = (json.loads(text) for text in (accepted.held, self.held(accepted)))
        return any(
            now[name]["by"] == then["by"] and now[name]["rows"] != then["rows"]
            for name, then in before.items()
            if name in now
        )

    def _digest(self, point: str, key: str) -> str:
        rows = self._rows(point, key)
        return digest_of(sorted(map(_values, rows if self.mask is None else map(self.mask.copy, rows))))

    def _read_by(self, name: str) -> str:
        point = self.pipeline.points[name]
        hops = [hop for hop in self.pipeline.hops if hop.source == name]
        filters = sorted((hop.name, hop.where or "") for hop in hops)
        places = sorted({item for hop in hops for item in filter_places(self.pipeline, hop).items()})
        compared = sorted(compared_at(self.pipeline, name).items())
        read_by = [point.place, list(point.key), point.version_place, compared, filters, *([places] if places else [])]
        return digest_of(read_by)

    def changed_since(self, finding: Finding) -> str | None:
        """Return how the rows of a finding's key differ from what was judged; None: they do not, as far as the evidence
        says what was there."""
        target = self.pipeline.hop(finding.hop).target
        if target not in tables_joined_to(self.pipeline, finding.hop):
            return None
        rows = self._rows(target, finding.key)
        if finding.verdict in (Verdict.MISSING, Verdict.VANISHED):
            return f"{target} has it by now" if rows else None
        if not rows:
            return None if finding.verdict is Verdict.CONFLICT else f"{target} has it no more"
        mask = mask_of(finding)
        rows = rows if mask is None else [mask.copy(row) for row in rows]
        judged = finding.evidence.get("columns", {}) if finding.verdict is Verdict.MISMATCHED else {}
        differs = judged and not any(
            all(row.get(f"c:{name}") == sides["target"] for name, sides in judged.items()) for row in rows
        )
        return f"{target} has other values of it than were judged" if differs else None

    def _rows(self, point: str, key: str) -> Sequence[Mapping[str, Any]]:
        return self.by_point.get(point, {}).get(key, [])


def read_key_rows(context: WindowContext, findings: Iterable[Finding | AcceptedFinding]) -> KeyRows:
    """Read the rows of the keys of some findings as they are now."""
    wanted: dict[str, dict[str, None]] = {}
    for finding in findings:
        for name in tables_joined_to(context.pipeline, finding.hop):
            wanted.setdefault(name, {})[finding.key] = None
    by_point: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in wanted}
    for name, keys in wanted.items():
        for some in _in_parts(keys):
            by_point[name].update(read_rows(context, name, some))
    mask = mask_of_rows(context.pipeline, context.storage)
    return KeyRows(pipeline=context.pipeline, by_point=by_point, mask=mask)


def tables_joined_to(pipeline: Pipeline, hop: str) -> list[str]:
    """Return the tables that share their keys with a hop: all that further hops join to its ends, in their order."""
    joined = {pipeline.hop(hop).source, pipeline.hop(hop).target}
    for _ in pipeline.hops:
        joined |= {
            end for link in pipeline.hops for end in (link.source, link.target) if {link.source, link.target} & joined
        }
    return sorted(name for name in joined if can_look_up(pipeline.points.get(name)))


def _in_parts(keys: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(keys)
    while some := list(islice(remaining, _KEYS_AT_ONCE)):
        yield some


def _values(row: Mapping[str, Any]) -> list[str]:
    """Return the compared values, the version and the filters of a row as texts that can be put in order."""
    names = sorted(name for name in row if name.startswith("c:"))
    return [repr(row[name]) for name in (*names, "version")] + sorted(row["excluded_by"] or ())
