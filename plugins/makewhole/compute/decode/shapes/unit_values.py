"""Read values of any format in which some fields count moments or days since 1970, as if these were written out.

What reads and writes the fields knows of no unit: the compared columns, the filters, the version and the repairs.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import COUNT, canonical_text
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.same_layout import VERSION
from makewhole.compute.decode.shapes.counts import counted, in_unit, usual_days, usual_moments
from makewhole.compute.decode.value_format import (
    DecodedParts,
    Deletion,
    Headers,
    ValueFormat,
    WantedLeaf,
    path_of,
)
from makewhole.compute.keys import KeyProblem
from makewhole.compute.versions import MOMENTS, version_number
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.config.template import exact_json
from makewhole.model.value_types import UNITS, Unit


class UnitFormat:
    """The values of another format, in which the numbers at some places count in units: place → unit."""

    def __init__(self, form: ValueFormat, units: Mapping[str, str]) -> None:
        self._form = form
        self._units = {path_of(place): UNITS[unit] for place, unit in units.items()}
        self.has_deletions, self.needs_key = form.has_deletions, form.needs_key

    def __repr__(self) -> str:
        return f"{self._form!r} with units"

    def around(self, form: ValueFormat) -> "UnitFormat":
        """Return the same units around another format."""
        other = copy(self)
        other._form, other.has_deletions, other.needs_key = form, form.has_deletions, form.needs_key
        return other

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Decode one value, its counts as moments and days. Raises as `ValueFormat.document`."""
        try:
            return self._with_moments(self._form.document(value, headers))
        except Deletion as deletion:
            row = None if deletion.row is None else self._with_moments(deletion.row)
            raise Deletion(str(deletion), row) from None

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return one value with the counts that it has: a template that copies one needs no unit."""
        return self._form.template_value(value, headers)

    def encode(self, payload: bytes) -> bytes:
        """Encode fields with their moments and days counted in the units of their places.

        Raises:
            KeyProblem: one of them cannot be counted, or the fields do not fit the format.
        """
        fields = parse_document(payload)
        written = fields
        for path, unit in self._units.items():
            written = _replaced(written, path, lambda value, at=path, by=unit: _count(at, by, value))
        return self._form.encode(payload if written is fields else exact_json.dumps(written).encode())

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the counts of many records as whole numbers, and make them moments and days."""
        units = {name: self._units[leaf.path] for name, leaf in wanted.items() if leaf.path in self._units}
        if "key" in units:
            return [], np.arange(batch.num_rows)
        if not units:
            return self._form.decode_together(batch, wanted)
        raw = {name: leaf._replace(declared=COUNT) if name in units else leaf for name, leaf in wanted.items()}
        parts, left = self._form.decode_together(batch, raw)
        kept, lefts = [], [left]
        for rows, frame in parts:
            are_counts = _are_counts(frame, units).to_numpy()
            kept.append((rows[are_counts], _in_units(frame.filter(are_counts), units, wanted)))
            lefts.append(rows[~are_counts])
        return kept, np.concatenate(lefts)

    def _with_moments(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        for path, unit in self._units.items():
            fields = _replaced(fields, path, lambda value, by=unit: in_unit(by, value))
        return fields


def _count(path: Path, unit: Unit, value: Any) -> Any:
    try:
        return counted(unit, value)
    except ValueError:
        raise KeyProblem(f"the field {'.'.join(path)} has no moment or day that can be counted in its unit") from None


def _replaced(fields: Any, path: Path, replace: Any) -> Any:
    """Return fields with another value at a path; the same object where nothing is there, or it stays as it is."""
    name, *rest = path
    if not isinstance(fields, Mapping) or name not in fields:
        return fields
    inner = _replaced(fields[name], tuple(rest), replace) if rest else replace(fields[name])
    return fields if inner is fields[name] else {**fields, name: inner}


def _are_counts(frame: pl.DataFrame, units: Mapping[str, Unit]) -> pl.Series:
    """Return of which rows all columns with a unit are whole numbers of 64 bits, or null."""
    tests = (pl.col(name).is_null() | pl.col(name).cast(pl.Int64, strict=False).is_not_null() for name in units)
    return frame.select(pl.all_horizontal(*tests).alias("are_counts")).to_series()


def _in_units(frame: pl.DataFrame, units: Mapping[str, Unit], wanted: Mapping[str, WantedLeaf]) -> pl.DataFrame:
    columns = (_column(frame[name], unit, wanted[name].declared).alias(name) for name, unit in units.items())
    return frame.with_columns(columns)


def _column(counts: pl.Series, unit: Unit, declared: str) -> pl.Series:
    """Return the canonical texts, or the numbers of versions, of a column of counts."""
    if declared == VERSION:
        return _versions(counts, unit)
    usual = usual_moments(counts, unit.digits, declared) if unit.digits is not None else None
    if unit.digits is None and declared == "date":
        usual = usual_days(counts)
    if usual is not None:
        return usual
    known = counts.drop_nulls().unique()
    texts = pl.Series([canonical_text(in_unit(unit, int(text)), declared) for text in known], dtype=pl.String)
    return counts.replace_strict(known, texts, default=None, return_dtype=pl.String)


def _versions(counts: pl.Series, unit: Unit) -> pl.Series:
    usual = None if unit.digits is None else usual_moments(counts, unit.digits, "timestamp")
    if usual is not None:
        moments = usual.cast(pl.Int64).cast(VERSION_NUMBER).to_frame("n")
        return moments.select((pl.col("n") + pl.lit(MOMENTS, dtype=VERSION_NUMBER)).cast(VERSION_NUMBER)).to_series()
    known = counts.drop_nulls().unique()
    numbers = pl.Series([version_number(in_unit(unit, int(text))) for text in known], dtype=VERSION_NUMBER)
    return counts.replace_strict(known, numbers, default=None, return_dtype=VERSION_NUMBER)
