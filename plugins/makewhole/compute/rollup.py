"""Roll up the verdicts of buckets: counts, and a digest that does not depend on their order."""

from collections.abc import Iterable

import polars as pl
import polars_hash as plh

from makewhole.compute.frames import HASH
from makewhole.model.verdict import HopCounts, Verdict
from makewhole.native.digest_lines import sum_of_matched_lines

_MODULUS = 2**128


def counts(judged: pl.DataFrame, source_rows: int, target_rows: int) -> HopCounts:
    """Count the judged keys of a bucket by verdict."""
    by_verdict = dict(judged.group_by("verdict").len().rows())
    of_source = judged.filter(pl.col("in_source"))
    repeated = judged.filter(pl.col("verdict") == Verdict.DUPLICATE.value)
    return HopCounts(
        source_keys=len(of_source),
        source_rows=source_rows,
        target_rows=target_rows,
        extra_copies=int((repeated["target_copies"] - 1).sum()),
        **{verdict.value: by_verdict.get(verdict.value, 0) for verdict in Verdict},
    )


def add_counts(parts: Iterable[HopCounts]) -> HopCounts:
    """Add up the counts of buckets, field by field."""
    total: dict[str, int] = {}
    for part in parts:
        for name, value in vars(part).items():
            total[name] = total.get(name, 0) + value
    return HopCounts(**total)


def digest(judged: pl.DataFrame) -> int:
    """Return a number below 2^128 that depends on the set of (key, verdict, row hash) and on nothing else.

    The sum modulo 2^128 of a hash per key: buckets can be added in any order.
    """
    if judged.is_empty():
        return 0
    lines = judged.select(
        plh.concat_str(
            [pl.col("key_hash"), pl.col("verdict"), pl.col("row_hash").cast(pl.String).fill_null("~")], separator="|"
        ).nchash.xxh3_128()
    )
    return add_digests(lines.to_series().to_list())


def digest_of_matched(keys: pl.DataFrame) -> int:
    """Return the `digest` of matched keys (`key_hi`, `key_lo`, `row_hash`), all of whose row hashes are known."""
    return sum_of_matched_lines(*(keys[name].to_numpy() for name in (*HASH, "row_hash")))


def add_digests(parts: Iterable[int]) -> int:
    """Return the digest of the union of disjoint sets of keys."""
    return sum(parts) % _MODULUS


def digest_text(number: int) -> str:
    """Format a digest as 32 hexadecimal digits."""
    return f"{number:032x}"
