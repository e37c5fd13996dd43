"""Read what a window found of some keys on a hop: from the file of its verdicts, and of clean keys from its slices.

A clean key has no row among the verdicts. One without a row that has one committed copy on each side, with equal
values, was clean; under upsert, one whose latest versions on both sides are equal. Any other without a row was not
judged.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH, HASHES, KEYS, TOPIC_KEYS, Schema, empty
from makewhole.compute.judge.clean_keys import COLUMNS, find_clean_keys
from makewhole.compute.judge.clean_versions import NOTHING_BEFORE, VERSION_COLUMNS, find_clean_versions
from makewhole.compute.keys import hash_hex, split_hex
from makewhole.lake.storage import Storage
from makewhole.model.hops import Semantics
from makewhole.model.verdict import Verdict

FilesByBucket = Mapping[str, Sequence[str]]

_FOUND: Schema = {"key_hash": pl.String, "verdict": pl.String, "is_held": pl.Boolean}

SEMANTICS = "semantics"
"""The name in the files of a result of the semantics of its hop."""


VERSION_UNIT = "version_unit"
"""The name in the files of a result of what versions are apart at least, where columns hold fewer digits."""


@dataclass(frozen=True, kw_only=True)
class VerdictFiles:
    """The files of a hop's verdicts in a window, and those of its two slices; none of slices where no key was clean.
    `is_upsert`: the copies in these were judged as versions, whatever the hop is now, with this `version_unit`."""

    hop: str
    verdicts: tuple[str, ...]
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    is_upsert: bool = False
    version_unit: Decimal = Decimal(0)

    @classmethod
    def of(cls, hop: str, files: Mapping[str, Any], slices: Sequence[FilesByBucket], bucket: str) -> "VerdictFiles":
        """Make those of a bucket, of whatever number, from the files of a result, and the files by bucket of its source
        and target."""
        has_clean = files["summary"]["clean"]
        source, target = (files_of_bucket(slice_files, bucket) if has_clean else () for slice_files in slices)
        is_upsert = files[SEMANTICS] == Semantics.UPSERT.value
        return cls(
            hop=hop,
            verdicts=files_of_bucket(files["verdicts_by_bucket"], bucket),
            source=source,
            target=target,
            is_upsert=is_upsert,
            version_unit=Decimal(files.get(VERSION_UNIT, 0)),
        )


def stored_verdicts(storage: Storage, files: VerdictFiles, key_hashes: Collection[str]) -> pl.DataFrame:
    """Return what was found of keys (`key_hash`, `verdict`), and whether the target held them (`is_held`). Keys that
    were not judged have no row.

    Raises:
        CorruptionError: a file that the journal names is not there.
    """
    frame = storage.read_parquet(files.verdicts, list(_FOUND)) if key_hashes else None
    verdicts = empty(_FOUND)
    if frame is not None:
        wanted = frame.filter(pl.col("key_hash").is_in(list(key_hashes)))
        verdicts = pl.concat([verdicts, wanted], how="diagonal")
    left = sorted({*key_hashes} - {*verdicts["key_hash"]})
    if not left or not (files.source and files.target):
        return verdicts
    return pl.concat([verdicts, _clean_of(storage, files, left)])


def _clean_of(storage: Storage, files: VerdictFiles, key_hashes: Iterable[str]) -> pl.DataFrame:
    wanted = pl.DataFrame([split_hex(key_hash) for key_hash in key_hashes], schema=HASHES, orient="row")
    columns = VERSION_COLUMNS if files.is_upsert else COLUMNS
    source, target = (_copies(storage, paths, columns, wanted) for paths in (files.source, files.target))
    # What was known besides need not be asked again: had it mattered, the key would have a row.
    clean = (
        find_clean_versions(source, target, files.hop, empty(HASHES), NOTHING_BEFORE, files.version_unit)
        if files.is_upsert
        else find_clean_keys(source, target, files.hop, empty(HASHES))
    )
    return clean.keys.select(hash_hex(), pl.lit(Verdict.MATCHED.value).alias("verdict"), pl.lit(True).alias("is_held"))


def _copies(storage: Storage, paths: Sequence[str], columns: Sequence[str], wanted: pl.DataFrame) -> pl.DataFrame:
    frame = storage.read_parquet(paths, list(columns))
    if frame is None:
        return empty({name: (KEYS | TOPIC_KEYS)[name] for name in columns})
    return frame.join(wanted, on=HASH, how="semi")
