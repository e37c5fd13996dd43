"""Read what a window found of some keys on a hop: from the file of its verdicts, and of clean keys from its slices.

A clean key has no row among the verdicts. One without a row that has one committed copy on each side, with equal
values, was clean; under upsert, one whose latest versions on both sides are equal. Any other without a row was not
judged. What its hop compared decides: a result says it where the snapshots of the slices hold more columns.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH, HASHES, KEYS, TOPIC_KEYS, Schema, empty
from makewhole.compute.judge.clean_keys import COLUMNS, find_clean_keys
from makewhole.compute.judge.clean_versions import NOTHING_BEFORE, VERSION_COLUMNS, find_clean_versions
from makewhole.compute.keys import hash_hex, split_hex
from makewhole.compute.normalise import hashed_by
from makewhole.lake.storage import Storage
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import as_compared_on, columns_asked_at, is_all_read
from makewhole.model.verdict import Verdict

FilesByBucket = Mapping[str, Sequence[str]]

_FOUND: Schema = {"key_hash": pl.String, "verdict": pl.String, "is_held": pl.Boolean}

SEMANTICS = "semantics"
"""The name in the files of a result of the semantics of its hop."""


VERSION_UNIT = "version_unit"
"""The name in the files of a result of what versions are apart at least, where columns hold fewer digits."""


COMPARED = "compared"
"""The name in the files of a result of the columns that its hop compared, by end: of a `source` or `target` whose
snapshot holds others, too."""


def judged_as(pipeline: Pipeline, hop: Hop) -> dict[str, Any]:
    """Return what the files of a result say of how its hop was judged, so that its clean keys can be found again."""
    unit, seen = pipeline.version_unit(hop), as_compared_on(pipeline, hop)
    ends = {"source": hop.source, "target": hop.target}
    compared = {end: list(columns_asked_at(seen, at)) for end, at in ends.items() if not is_all_read(seen, at)}
    return {
        SEMANTICS: hop.semantics.value,
        **({VERSION_UNIT: str(unit)} if unit else {}),
        **({COMPARED: compared} if compared else {}),
    }


@dataclass(frozen=True, kw_only=True)
class VerdictFiles:
    """The files of a hop's verdicts in a window, and those of its two slices; none of slices where no key was clean.
    `is_upsert`: the copies in these were judged as versions, whatever the hop is now, with this `version_unit`.
    `compared`: by what columns, by end; an end that it lacks, by all that its slice holds."""

    hop: str
    verdicts: tuple[str, ...]
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    is_upsert: bool = False
    version_unit: Decimal = Decimal(0)
    compared: Mapping[str, Sequence[str]] = field(default_factory=dict)

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
            compared=files.get(COMPARED, {}),
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


def pending_in(storage: Storage, files: VerdictFiles, key_hashes: Collection[str]) -> set[str]:
    """Return which of some keys a window judged pending. None of them was clean: its slices are not read.

    Raises:
        CorruptionError: a file that the journal names is not there.
    """
    frame = storage.read_parquet(files.verdicts, ["key_hash", "verdict"]) if key_hashes else None
    if frame is None:
        return set()
    is_pending = (pl.col("verdict") == Verdict.PENDING.value) & pl.col("key_hash").is_in(list(key_hashes))
    return {*frame.filter(is_pending)["key_hash"]}


def _clean_of(storage: Storage, files: VerdictFiles, key_hashes: Iterable[str]) -> pl.DataFrame:
    wanted = pl.DataFrame([split_hex(key_hash) for key_hash in key_hashes], schema=HASHES, orient="row")
    columns = VERSION_COLUMNS if files.is_upsert else COLUMNS
    ends = ("source", files.source), ("target", files.target)
    source, target = (_copies(storage, paths, columns, wanted, files.compared.get(end)) for end, paths in ends)
    # What was known besides need not be asked again: had it mattered, the key would have a row.
    clean = (
        find_clean_versions(source, target, files.hop, empty(HASHES), NOTHING_BEFORE, files.version_unit)
        if files.is_upsert
        else find_clean_keys(source, target, files.hop, empty(HASHES))
    )
    return clean.keys.select(hash_hex(), pl.lit(Verdict.MATCHED.value).alias("verdict"), pl.lit(True).alias("is_held"))


def _copies(
    storage: Storage,
    paths: Sequence[str],
    columns: Sequence[str],
    wanted: pl.DataFrame,
    compared: Sequence[str] | None,
) -> pl.DataFrame:
    """Return the copies of keys in a slice, with the hash of what their hop compared (`compared` as the file of a
    result says it)."""
    frame = storage.read_parquet(paths, [*columns, *(f"c:{name}" for name in compared or ())])
    if frame is None:
        return empty({name: (KEYS | TOPIC_KEYS)[name] for name in columns})
    copies = frame.join(wanted, on=HASH, how="semi")
    if compared is None:
        return copies
    hashed = hashed_by(copies, compared, is_topic="is_aborted" in copies.columns)
    return hashed.select(name for name in columns if name in hashed.columns)
