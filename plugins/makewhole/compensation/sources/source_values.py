"""Find the compared values that the source has for the keys of findings, wherever its record lies.

Of an event its first record counts, under `upsert` the latest version. What the window's own slice decides is in the
evidence; records outside it are fetched by position, rows by key. Where the evidence is masked, so are all of them:
rows are masked alike before they are compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from makewhole.compensation.sources.sources import Position, Sources, decoded
from makewhole.compute.frames import KEYS, empty
from makewhole.compute.normalise import table_frame
from makewhole.compute.versions import version_in_order
from makewhole.model.errors import ActionRefusedError, PermanentError
from makewhole.model.hops import Hop, Semantics
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.points import TablePoint, TopicPoint, has_log
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Finding, Verdict
from makewhole.tables.rows import Values
from makewhole.window.context import value_shape
from makewhole.window.masks import mask_of

_UNORDERED = Refusal(
    RefusalCode.NOT_KNOWN, "nothing shows which version of this key is the source's latest; repair it by hand"
)
_UNNAMED = Refusal(
    RefusalCode.NOT_KNOWN, "the evidence names no record of this key in the source; run the window again"
)
_UNREADABLE = Refusal(
    RefusalCode.NOT_KNOWN, "the source's record of this key can be read nowhere any more; repair it by hand"
)


class SourceValues:
    """The values of the sources of a pipeline's hops. Load findings before asking for them."""

    def __init__(self, sources: Sources) -> None:
        self._sources, self._pipeline = sources, sources.pipeline
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}
        self._rows: dict[tuple[str, str], pl.DataFrame] = {}

    def load(self, findings: Iterable[Finding]) -> None:
        """Read what the evidence of these findings does not decide, with one call per point."""
        positions: dict[str, list[Position]] = {}
        keys: dict[str, set[str]] = {}
        for finding in findings:
            hop = self._hops[finding.hop]
            if has_log(self._pipeline.points[hop.source]):
                wanted = [] if _is_decided(finding, hop) else _copies_outside(finding)
                positions.setdefault(hop.source, []).extend(_position(copy) for copy in wanted)
            elif not _is_decided(finding, hop):
                keys.setdefault(hop.name, set()).add(finding.key)
        self.load_records(positions)
        for name, wanted_keys in keys.items():
            self._load_rows(self._hops[name], sorted(wanted_keys))

    def of(self, finding: Finding) -> Values | None:
        """Return the source's values for a loaded finding, masked as its evidence is (`mask_of`); None: its latest
        version deletes the key.

        Raises:
            RefusedError: they are not known.
            CorruptionError: the key of the mask is gone.
        """
        hop, evidence = self._hops[finding.hop], finding.evidence
        if evidence.get("order_unknown"):
            raise ActionRefusedError(_UNORDERED)
        if _is_decided(finding, hop):
            deleted = evidence.get("latest", {}).get("tombstone")
            return None if deleted else {name: evidence["values"].get(name) for name in self._compared(hop)}
        source = self._pipeline.points[hop.source]
        values = self._of_record(source, hop, finding) if has_log(source) else self._of_row(source, hop, finding)
        mask = mask_of(finding)
        return values if values is None or mask is None else mask.values(values)

    def has_row(self, hop: Hop, key: str) -> bool:
        """Return whether the table that a hop starts from has a row of this key now that passes the hop's filter."""
        if (hop.name, key) not in self._rows:
            self._load_rows(hop, [key])
        return len(self._rows[hop.name, key]) > 0

    def row_values(self, hop: Hop, key: str) -> Values:
        """Return the values of the row that counts in the table that a hop starts from; there is one.

        Raises:
            RefusedError: nothing shows which row that is.
        """
        return self._values(hop, self._counting_row(hop, self._rows[hop.name, key]))

    # Records

    def load_records(self, positions: Mapping[str, Sequence[Position]]) -> None:
        """Read records; one that cannot be read costs its own finding the answer, and no other."""
        for point, wanted in positions.items():
            try:
                self._sources.load({point: wanted})
            except PermanentError:
                for position in sorted(set(wanted)):
                    with suppress(PermanentError):
                        self._sources.load({point: [position]})

    def _of_record(self, point: TopicPoint, hop: Hop, finding: Finding) -> Values | None:
        is_upsert = hop.semantics is Semantics.UPSERT
        copies = _copies_outside(finding)
        if not copies:
            raise ActionRefusedError(_UNNAMED)
        if is_upsert:
            copies = [_latest(copies, has_versions=point.version is not None)]
        shape = value_shape(self._pipeline, point)
        for copy in copies:
            record = self._sources.find(hop.source, _position(copy), finding.key)
            if record is None:
                raise ActionRefusedError(_UNREADABLE)
            fields = decoded(record, shape)
            if fields["is_tombstone"] and is_upsert:
                return None
            if hop.name not in (fields["excluded_by"] or ()):
                return self._values(hop, fields)
        raise ActionRefusedError(_UNNAMED)

    # Rows

    def _load_rows(self, hop: Hop, keys: Sequence[str]) -> None:
        read = self._sources.rows_now(hop.source, keys)
        frames = [table_frame(frame, dict(self._compared(hop)))[0] for frame in read]
        source_rows = pl.concat(frames) if frames else empty(KEYS)
        passing = passing_source_rows(source_rows, hop)
        by_key = {str(name[0]): rows for name, rows in passing.group_by("key")}
        self._rows |= {(hop.name, key): by_key.get(key, passing.clear()) for key in keys}

    def _of_row(self, point: TablePoint, hop: Hop, finding: Finding) -> Values:
        rows = self._rows[hop.name, finding.key]
        if rows.is_empty():
            raise ActionRefusedError.of(RefusalCode.ERASED, f"{point.name} has no row of this key any more")
        return self._values(hop, self._counting_row(hop, rows))

    def _counting_row(self, hop: Hop, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the first row by time, or the latest version."""
        if hop.semantics is Semantics.EVENT:
            return rows.sort("time", "place", nulls_last=True).row(0, named=True)
        last = _latest_rows(rows)
        if last["row_hash"].n_unique() > 1:
            raise ActionRefusedError(_UNORDERED)
        return last.row(0, named=True)

    def _values(self, hop: Hop, fields: Mapping[str, Any]) -> Values:
        return {name: fields[f"c:{name}"] for name in self._compared(hop)}

    def _compared(self, hop: Hop) -> Mapping[str, str]:
        return compared_on(self._pipeline, hop)


def passing_source_rows(rows: pl.DataFrame, hop: Hop) -> pl.DataFrame:
    """Return the rows of a table that pass the filter of a hop; of versions none of a key whose latest does not."""
    is_excluded = pl.col("excluded_by").list.contains(hop.name)
    passing = rows.filter(~is_excluded)
    if hop.semantics is Semantics.EVENT or len(passing) == len(rows):
        return passing
    latest = [_latest_rows(of_key) for _, of_key in rows.group_by("key")]
    left = pl.concat(latest).filter(is_excluded).select("key")
    return passing.join(left, on="key", how="anti")


def _latest_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a key that could be its latest version: several, where nothing orders them."""
    ordered = rows.with_columns(version_in_order()).sort("version", "time")
    return ordered.filter(
        (pl.col("version") == ordered["version"][-1]) & pl.col("time").eq_missing(ordered["time"][-1])
    )


def _is_decided(finding: Finding, hop: Hop) -> bool:
    """Return whether the evidence has the values that count: no earlier record of an event may have others."""
    evidence = finding.evidence
    if "values" not in evidence:
        return False
    if finding.verdict is not Verdict.DUPLICATE or hop.semantics is Semantics.UPSERT:
        return True
    before = [copy for copy in evidence.get("source_elsewhere", ()) if not copy.get("later")]
    return all(copy.get("row_hash") is not None and copy["row_hash"] == evidence.get("row_hash") for copy in before)


def _copies_outside(finding: Finding) -> list[Mapping[str, Any]]:
    latest = finding.evidence.get("latest", {})
    if "offset" in latest:
        return [latest]
    return list(finding.evidence.get("source_elsewhere", ()))


def _position(copy: Mapping[str, Any]) -> Position:
    return int(copy["partition"]), int(copy["offset"])


def _latest(copies: Sequence[Mapping[str, Any]], *, has_versions: bool) -> Mapping[str, Any]:
    """Return the latest of several versions in a topic, given in their order.

    Raises:
        RefusedError: without numbers, nothing orders records of different partitions.
    """
    last = copies[-1]
    rivals = [copy for copy in copies if copy.get("version") == last.get("version")] if has_versions else copies
    states = {(copy.get("row_hash"), copy.get("tombstone", False)) for copy in rivals}
    if len({copy["partition"] for copy in rivals}) > 1 and len(states) > 1:
        raise ActionRefusedError(_UNORDERED)
    return last
