"""Look after the folder of a publication: whose it is, which manifests stand in it, what a killed attempt left."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from makewhole.journal.publications import Publication
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Publish
from makewhole.publishing.layout import data_folder, manifest_path, published_below

OWNER = "owner.json"
"""The file that says whose the folder is."""


def root_of(pipeline: Pipeline, publish: Publish, storage: Storage) -> str:
    """Return the folder in which a point is published."""
    return publish.path or storage.uri(f"{published_below(pipeline.name)}/{publish.point}")


def topic_of(pipeline: Pipeline, publish: Publish) -> str:
    """Return the place of the topic into which a point is published; empty: none."""
    return "" if publish.topic is None else pipeline.topic(publish.topic).place


def claim(publication: Publication, *, is_new: bool) -> Storage:
    """Return the folder of a publication, which is marked as its own.

    Raises:
        RefusedError: something else is published there, or what was published there is gone.
    """
    folder = Storage(root=publication.root, is_shared=True)
    if is_new and folder.read_if_exists(OWNER) is None:
        with suppress(CorruptionError):  # another was first: it is named below
            folder.write_once(OWNER, json.dumps(_owner(publication), indent=2).encode() + b"\n")
    require_own(folder, publication)
    return folder


def require_own(folder: Storage, publication: Publication) -> None:
    """Check that a folder is still marked as that of a publication: on S3 another one that claims it at the same moment
    is noticed by this alone.

    Raises:
        RefusedError: it is not.
    """
    content = folder.read_if_exists(OWNER)
    if content is None:
        raise RefusedError(
            f"{folder.uri(OWNER)} is gone, though windows were published there: bring the folder back, or publish "
            f"{publication.point} to another one"
        )
    if not _is_owner(content, publication):
        raise RefusedError(
            f"{folder.uri(OWNER)} says that something else is published there, perhaps by another makewhole; nothing "
            f"was written. Publish {publication.point} of {publication.pipeline} to a folder of its own"
        )


def _is_owner(content: bytes, publication: Publication) -> bool:
    try:
        return bool(json.loads(content) == _owner(publication))
    except (ValueError, RecursionError):
        return False


def _owner(publication: Publication) -> dict[str, str]:
    return {"publication": publication.id, "pipeline": publication.pipeline, "point": publication.point}


def show(folder: Storage, manifest: Mapping[str, Any]) -> str:
    """Make a revision of a window visible, whole or not at all; harmless when it is. Return the name of its manifest.

    Raises:
        CorruptionError: one with another content stands there.
    """
    path = manifest_path(manifest["window"], manifest["revision"])
    return folder.write_once(path, json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")


def sweep(folder: Storage, number: int, revision: int) -> int:
    """Remove the files that killed attempts at a revision of a window left, of which nothing is decided yet. Return
    their number."""
    left = folder.files_below(data_folder(number, revision))
    for file in left:
        folder.remove(file.path)
    return len(left)


def require_files(folder: Storage, paths: Collection[str]) -> None:
    """Check that the files of revisions before are there, which a new manifest is going to name.

    Raises:
        CorruptionError: one is gone.
    """
    folders = {path.rsplit("/", 1)[0] for path in paths}
    there = {file.path for each in folders for file in folder.files_below(each)}
    gone = sorted(set(paths) - there)
    if gone:
        raise CorruptionError(
            f"{folder.uri(gone[0])} was published and is not there; nothing was changed. Bring the file back"
        )
