"""Find what an earlier revision of a window has read of its points, and check that its files are whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.journal import windows
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.snapshot_manifests import REUSED
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import Carrier, carry_released


@dataclass(frozen=True, kw_only=True)
class EarlierSnapshot:
    """A snapshot that an earlier revision has. `revision` is the one that read it, and whose folder has its files."""

    revision: int
    manifest: Mapping[str, Any]

    @property
    def files(self) -> dict[str, str]:
        """The digests of its files by their paths."""
        files = dict(self.manifest["sha256"])
        if "sequences" in self.manifest:
            files[self.manifest["sequences"]] = self.manifest["sequences_sha256"]
        return files


def earlier_snapshots(journal: PgConnection, context: WindowContext) -> dict[str, EarlierSnapshot]:
    """Return the newest snapshot that earlier revisions of a window have of each point; none where all is to be read
    again."""
    if windows.reads_again(journal, context.window):
        return {}
    return {
        point: EarlierSnapshot(revision=manifest.get(REUSED, {}).get("revision", revision), manifest=manifest)
        for point, revision, manifest in snapshot_manifests.newest_before(journal, context.window)
    }


@dataclass(frozen=True, kw_only=True)
class FilesToCheck:
    """Files of a storage, each with the digest of what was written."""

    context: WindowContext
    files: tuple[tuple[str, str], ...]


def changed_file(task: FilesToCheck) -> str | None:
    """Return the first file that is not what was written, or not there; None: all are whole. Every byte is read."""
    storage = task.context.storage
    for path, digest in task.files:
        try:
            if storage.sha256(path) != digest:
                return path
        except FileNotFoundError:
            return path
    return None


def points_with_whole_files(
    carrier: Carrier, journal: PgConnection, context: WindowContext, snapshots: Mapping[str, EarlierSnapshot]
) -> dict[str, str | None]:
    """Return for each point a file of its snapshot that is not whole any more, or lies elsewhere; None: all are."""
    own = f"{context.pipeline.name}/window={context.window.number}/"
    tasks = [
        (point, FilesToCheck(context=context, files=files))
        for point, snapshot in snapshots.items()
        for files in _shares(sorted(snapshot.files.items()), carrier.parallelism)
    ]
    answers = carry_released(carrier, journal, [task for _, task in tasks], changed_file) if tasks else []
    changed_files: dict[str, str | None] = {
        point: next((path for path in _paths(snapshot.manifest) if not path.startswith(own)), None)
        for point, snapshot in snapshots.items()
    }
    for (point, _), path in zip(tasks, answers, strict=True):
        changed_files[point] = changed_files[point] or path
    return changed_files


def _paths(manifest: Mapping[str, Any]) -> list[str]:
    by_bucket = [*manifest["files"].values(), *manifest.get("tombstones", {}).values()]
    listed = [path for paths in by_bucket for path in paths]
    return [*listed, *manifest["undecodable_files"], *manifest["sha256"]]


def _shares(files: Sequence[tuple[str, str]], number: int) -> list[tuple[tuple[str, str], ...]]:
    return [share for at in range(max(number, 1)) if (share := tuple(files[at :: max(number, 1)]))]
