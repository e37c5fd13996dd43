"""Name files of other windows' snapshots, and know which of them were read as the file of the pipeline says now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.compute.buckets import files_of_bucket
from makewhole.journal.results.snapshot_manifests import VALUES_OF


@dataclass(frozen=True, kw_only=True)
class WindowFiles:
    """Files of a bucket in the snapshots of other windows at a point. Of what was read `otherwise` the values are not
    known, and the versions are in no order with those of now."""

    alike: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alike or self.otherwise)

    def __add__(self, other: "WindowFiles") -> "WindowFiles":
        return WindowFiles(alike=self.alike + other.alike, otherwise=self.otherwise + other.otherwise)


@dataclass(frozen=True, kw_only=True)
class FilesOfWindows:
    """Files of other windows' snapshots at a point, by bucket."""

    alike: Mapping[str, list[str]] = field(default_factory=dict)
    otherwise: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, manifests: Iterable[Mapping[str, Any]], own: Mapping[str, Any]) -> "FilesOfWindows":
        """Return the files that manifests of other windows name; `own` is the one of this window."""
        alike: dict[str, list[str]] = {}
        otherwise: dict[str, list[str]] = {}
        for manifest in manifests:
            files = alike if manifest.get(VALUES_OF) == own.get(VALUES_OF) else otherwise
            for bucket, paths in manifest["files"].items():
                files.setdefault(bucket, []).extend(paths)
        return cls(alike=alike, otherwise=otherwise)

    def in_bucket(self, bucket: str) -> WindowFiles:
        """Return the files that hold the keys of a bucket."""
        return WindowFiles(alike=files_of_bucket(self.alike, bucket), otherwise=files_of_bucket(self.otherwise, bucket))
