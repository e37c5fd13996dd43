"""Read what a window judged of keys on a hop before a plan did anything, clean ones included."""

from collections.abc import Collection, Mapping
from typing import Any

from makewhole.compute.buckets import bucket_name, buckets_of
from makewhole.compute.keys import split_hex
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.lake.stored_verdicts import FilesByBucket, VerdictFiles, stored_verdicts
from makewhole.model.hops import Hop
from makewhole.model.verdict import Verdict
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext


class MatchedBefore:
    """The verdicts of a window, by the files of its results."""

    def __init__(self, context: WindowContext, slices: Mapping[str, FilesByBucket] | None = None) -> None:
        """`slices`: the files by bucket of each point in the window's snapshots."""
        self._context, self._slices = context, slices or {}

    @classmethod
    def of(cls, journal: PgConnection, context: WindowContext) -> "MatchedBefore":
        """Read from the journal which files the window has."""
        manifests: Mapping[str, Any] = snapshot_manifests.snapshots(journal, context.window)
        return cls(context, {name: manifest["files"] for name, manifest in manifests.items()})

    def among(self, hop: Hop, result: HopResult | None, key_hashes: Collection[str]) -> set[str]:
        """Return those of some keys that were matched on a hop: the others are not of its source in this window."""
        verdicts = self.verdicts(hop, result, key_hashes)
        return {key_hash for key_hash, verdict in verdicts.items() if verdict is Verdict.MATCHED}

    def verdicts(self, hop: Hop, result: HopResult | None, key_hashes: Collection[str]) -> dict[str, Verdict]:
        """Return the verdicts on some keys on a hop; of those that are none of its window, nothing."""
        if result is None:
            return {}
        verdicts: dict[str, Verdict] = {}
        slices = [self._slices.get(name, {}) for name in (hop.source, hop.target)]
        buckets: dict[str, list[str]] = {}
        number = buckets_of(result.files["verdicts_by_bucket"])
        for key_hash in key_hashes:
            bucket = bucket_name(split_hex(key_hash)[0], number)
            buckets.setdefault(bucket, []).append(key_hash)
        for bucket, wanted in buckets.items():
            files = VerdictFiles.of(hop.name, result.files, slices, bucket)
            frame = stored_verdicts(self._context.storage, files, wanted)
            verdicts |= {key_hash: Verdict(verdict) for key_hash, verdict in frame.select("key_hash", "verdict").rows()}
        return verdicts
