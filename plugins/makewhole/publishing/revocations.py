"""Note beside published windows which of them are not proven any more: their certificates were revoked.

A notice is a file that is there as long as no certificate of the revision stands. What it says comes from the chain, so
that whoever comes next writes one that was left out. Only tasks write any that report it as an event, too.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from makewhole.file_system import path_below
from makewhole.journal import publications, windows
from makewhole.journal.publications import Publication, PublishedWindow
from makewhole.lake.storage import Storage
from makewhole.model.errors import PermanentError, TransientError
from makewhole.model.pipeline import Pipeline
from makewhole.publishing.layout import REVOKED, manifest_path, notice_path
from makewhole.publishing.place import require_own, root_of
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ChangedNotice:
    """A published revision of which a notice was written, or was removed as a certificate stands again (`revocation` is
    None)."""

    point: str
    window: int
    revision: int
    manifest: str
    revocation: Mapping[str, Any] | None

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as an event has it."""
        because = None if self.revocation is None else self.revocation["because"]["reason"]
        return {
            "point": self.point,
            "window": self.window,
            "revision": self.revision,
            "manifest": self.manifest,
            "revoked_by": None if self.revocation is None else self.revocation["ordinal"],
            "because": because,
        }


def note_revocations(journal: PgConnection, pipeline: Pipeline, storage: Storage) -> list[ChangedNotice]:
    """Bring the notices of all that is published of a pipeline up to date; return what changed. It commits.

    A folder that the pipeline's file does not name any more, and that cannot be reached, is logged and passed over.

    Raises:
        RefusedError: something else is published in a folder, or it is gone.
        TransientError: a storage does not answer.
    """
    named = {(publish.point, root_of(pipeline, publish, storage)) for publish in pipeline.publish}
    changed = []
    for publication in publications.of_pipeline(journal, pipeline.name):
        try:
            changed += _note_in_folder(journal, publication)
        except (OSError, PermanentError, TransientError) as error:
            journal.rollback()
            if (publication.point, publication.root) in named:
                raise
            logger.warning("%s cannot say which of its windows are revoked: %s", publication.root, error)
    return changed


def _note_in_folder(journal: PgConnection, publication: Publication) -> list[ChangedNotice]:
    """Bring the notices in the folder of a publication up to date; return what changed. It commits."""
    windows.lock_pipeline(journal, publication.pipeline)  # the chain stays as it is meanwhile
    visible = [row for row in publications.published(journal, publication) if row.visible_at is not None]
    wanted = {_path(row): row for row in visible if row.revocation is not None}
    folder = Storage(root=publication.root, is_shared=True)
    there = {f"{REVOKED}/{name}" for name in folder.names(REVOKED) if name.endswith(".json")} if visible else set()
    changed = []
    if wanted.keys() != there:
        require_own(folder, publication)
        for path in sorted(wanted.keys() - there):
            folder.write_once(path, _content(wanted[path]))
            changed.append(_changed(publication, wanted[path]))
        for path in sorted(there - wanted.keys()):
            folder.remove(path)
        stands_again = {*map(_revision, there)} - {*map(_revision, wanted)}
        again = [row for row in visible if _revision(notice_path(row.number, row.revision, 0)) in stands_again]
        changed += [_changed(publication, row) for row in again]
    journal.commit()
    return changed


def _revision(path: str) -> str:
    """Return the part of the path of a notice that is the same for all entries of the chain."""
    return path.rpartition(".by=")[0]


def _path(window: PublishedWindow) -> str:
    assert window.revocation is not None
    return notice_path(window.number, window.revision, window.revocation["ordinal"])


def _content(window: PublishedWindow) -> bytes:
    document = {"window": window.number, "revision": window.revision, "revocation": window.revocation}
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def _changed(publication: Publication, window: PublishedWindow) -> ChangedNotice:
    return ChangedNotice(
        point=publication.point,
        window=window.number,
        revision=window.revision,
        manifest=path_below(publication.root, manifest_path(window.number, window.revision)),
        revocation=window.revocation,
    )
