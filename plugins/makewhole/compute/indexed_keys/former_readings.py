"""Find what a run of the key index says when the pipeline's file reads its point otherwise than the window of it did.

A run notes which columns its row hashes are of, with the hashes of hops that compare others, and from which field its
versions are. Values of other columns are not known. Versions of another field are in no order with those of now, and
older: what is numbered by the field of now came after the file was changed. Of a key with several copies a run has the
first and, where they were versions then, the latest one: of the others no value is known after its hop's semantics
changed.
"""

import hashlib
from collections.abc import Mapping, Sequence

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.stored_runs import OF_HOP
from makewhole.compute.versions import VERSION, is_moment, is_unreadable

COMPARED, OF_HOPS, NUMBERED = "compared", "of_hops", "numbered_by"
IS_RENUMBERED = "is_renumbered"
"""A column of runs as they are asked: its versions are of another field than the file names now."""

NOT_KNOWN = 0
"""Stands for the field of versions in `numbered_by` where that is not known."""

_HASHES = ("row_hash", "last_row_hash")
_VERSIONS = (("version", "place"), ("last_version", "last_place"))


def with_reading(run: pl.DataFrame, compare: Mapping[str, str], version: str | None) -> pl.DataFrame:
    """Note in a run which columns its row hashes are of (names with types, in order), and the field of its versions."""
    return run.with_columns(
        pl.lit(compared_number(compare), dtype=pl.UInt64).alias(COMPARED),
        pl.lit(numbered_number(version), dtype=pl.UInt64).alias(NUMBERED),
    )


def with_hashes_of_hops(run: pl.DataFrame, others: Sequence[tuple[Mapping[str, str], pl.DataFrame]]) -> pl.DataFrame:
    """Note in a run what it would be with the hashes of other columns: `others` are these columns, each with that run,
    whose rows are in the same order."""
    if not others:
        return run
    is_first = pl.col("is_latest").fill_null(False)
    last = pl.when(is_first).then("row_hash").otherwise("last_row_hash").alias("last_row_hash")
    hashes = [
        of_hop.select(pl.lit(compared_number(compare), dtype=pl.UInt64).alias(COMPARED), "row_hash", last)
        for compare, of_hop in others
    ]
    structs = [frame.select(pl.struct(*OF_HOP)).to_series().alias(str(at)) for at, frame in enumerate(hashes)]
    return run.with_columns(pl.DataFrame(structs).select(pl.concat_list(pl.all()).alias(OF_HOPS)).to_series())


def compared_number(compare: Mapping[str, str]) -> int:
    """Return the number that stands for the columns of a row hash, with their types."""
    return _number(repr(list(compare.items())))


def numbered_number(version: str | None) -> int:
    """Return the number that stands for a field of versions, or for none."""
    return _number(version or "")


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def as_read_now(runs: pl.DataFrame, compare: Mapping[str, str], *, is_upsert: bool) -> pl.DataFrame:
    """Return rows of runs with what they say of a hop of the file of now."""
    known = _with_comparable_values(runs, compare)
    return _with_values_of_semantics(_with_versions_of_now(known), is_upsert=is_upsert)


def _with_comparable_values(runs: pl.DataFrame, compare: Mapping[str, str]) -> pl.DataFrame:
    """Take away the row hashes of other columns than these."""
    if COMPARED not in runs.columns:
        return runs
    number = compared_number(compare)
    is_comparable = (pl.col(COMPARED) == number).fill_null(True)
    if OF_HOPS in runs.columns and runs[OF_HOPS].null_count() < len(runs):
        return _with_hashes_of_hop(runs, is_comparable, number).drop(COMPARED, OF_HOPS)
    return _without_values(runs, ~is_comparable).drop(COMPARED, OF_HOPS, strict=False)


def _with_hashes_of_hop(runs: pl.DataFrame, is_comparable: pl.Expr, number: int) -> pl.DataFrame:
    """Take the row hashes of a hop's own columns, where rows have them, in the place of those of other columns."""
    is_asked = pl.element().struct.field(COMPARED) == pl.lit(number, dtype=pl.UInt64)
    of_hop = pl.col(OF_HOPS).list.eval(pl.element().filter(is_asked)).list.first()
    hashes = [name for name in _HASHES if name in runs.columns]
    return runs.with_columns(
        pl.when(is_comparable).then(pl.col(name)).otherwise(of_hop.struct.field(name)).alias(name) for name in hashes
    )


def _with_values_of_semantics(runs: pl.DataFrame, *, is_upsert: bool) -> pl.DataFrame:
    """Take away the row hashes of keys of which a run does not say which copy counts: it was made of events, and its
    hop has versions now, or it had several versions of what is an event now."""
    if "last_place" not in runs.columns:
        return runs
    is_of_events = pl.col("last_place").is_null()
    is_divided = (pl.col("last_row_hash") != pl.col("row_hash")).fill_null(True) & ~is_of_events
    return _without_values(runs, is_of_events if is_upsert else is_divided)


def _with_versions_of_now(runs: pl.DataFrame) -> pl.DataFrame:
    """Take the versions of another field away (`IS_RENUMBERED`), and their rows where a window since has the key. Where
    those versions came in another order than that of their numbers, the values of their key are not known."""
    if IS_RENUMBERED not in runs.columns:
        return runs
    if not runs[IS_RENUMBERED].any():
        return runs.drop(IS_RENUMBERED, NUMBERED)
    of_now = pl.col("window").filter(~pl.col(IS_RENUMBERED)).max().over(HASH)
    left = runs.filter(~pl.col(IS_RENUMBERED) | of_now.is_null() | (pl.col("window") > of_now))
    unordered = _unordered_keys(left.filter(IS_RENUMBERED)).with_columns(pl.lit(True).alias("_is_unordered"))
    marked = left.join(unordered, on=HASH, how="left", maintain_order="left")
    is_unordered = pl.col("_is_unordered").fill_null(False) & pl.col(IS_RENUMBERED)
    numbers = [pl.when(~pl.col(IS_RENUMBERED)).then(name).alias(name) for name, _ in _VERSIONS if name in runs.columns]
    return _without_values(marked, is_unordered).with_columns(numbers).drop("_is_unordered", IS_RENUMBERED, NUMBERED)


def _unordered_keys(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the keys whose versions are of several fields or partitions, or do not ascend with their offsets."""
    copies = pl.concat(
        runs.select(*HASH, NUMBERED, pl.col(name).cast(VERSION).alias("version"), pl.col(place).alias("place"))
        for name, place in _VERSIONS
        if place in runs.columns
    ).drop_nulls("version")
    position = pl.col("place").str.split_exact(":", 1).struct
    placed = copies.with_columns(position[0].alias("partition"), position[1].cast(pl.Int64).alias("offset"))
    is_ascending = (pl.col("version").diff() >= 0).fill_null(True).all()
    return (
        placed.sort("offset")
        .group_by(HASH)
        .agg(
            (pl.col(NUMBERED).n_unique() == 1).alias("_has_one_field"),
            (pl.col("partition").n_unique() == 1).alias("_has_one_partition"),
            (is_ascending & ~is_unreadable().any() & (is_moment().n_unique() == 1)).alias("_is_ascending"),
        )
        .filter(~pl.all_horizontal("_has_one_field", "_has_one_partition", "_is_ascending"))
        .select(HASH)
    )


def _without_values(runs: pl.DataFrame, is_unknown: pl.Expr) -> pl.DataFrame:
    hashes = [name for name in _HASHES if name in runs.columns]
    return runs.with_columns(pl.when(~is_unknown).then(name).alias(name) for name in hashes)
