"""Erase a key of a pipeline: from targets, archives, files and the journal, in this order.

So what is left still says where the rest is: killed anywhere, the same request goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import polars as pl

from makewhole.compute.keys import hash_hex, with_hash
from makewhole.erasure.archived_records import positions_of, rewritten_segments, segments_of
from makewhole.erasure.half_written import (
    require_unnamed,
    unfinished_files,
    unreadable_segments,
    unsearchable_archives,
)
from makewhole.erasure.planned_actions import AtTargets, erase_at_targets, hash_of_now, payload_path, payloads_without
from makewhole.erasure.stored_rows import RowsOfKey, renew_filter, search_files, write_without
from makewhole.journal.database import JournalSession
from makewhole.journal.retention import erasures
from makewhole.journal.retention.erasures import ErasedKey, PlanOfKey
from makewhole.journal.retention.file_locks import leave_files, require_files
from makewhole.key_index.files import filter_path
from makewhole.lake.give_name import unfinished_path
from makewhole.lake.storage import Storage, StoredFile
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.retention import Erasure
from makewhole.publishing.layout import published_below
from makewhole.signing.keys import SigningKey

FORMAT = "makewhole erasure 1"


@dataclass(frozen=True, kw_only=True)
class EraseRequest:
    """A request to erase a key (its text, as `makewhole explain` takes it): who asks, and why. `spares`: points of
    chains in which the text is the key of another thing."""

    pipeline: Pipeline
    key: str
    asked_by: str
    reason: str
    spares: tuple[str, ...] = ()

    @property
    def erased(self) -> ErasedKey:
        """The key with its hash."""
        rows = with_hash(pl.DataFrame({"key": [self.key]}, schema={"key": pl.String})).select(hash_hex())
        return ErasedKey(pipeline=self.pipeline.name, text=self.key, hash=rows.item(), spares=self.spares)


@dataclass(frozen=True, kw_only=True)
class ErasureContext:
    """The journal and the storage of a service, the connections of the pipeline, and the key that signs."""

    journal: JournalSession
    storage: Storage
    connections: Mapping[str, Connection]
    signing_key: SigningKey | None = None


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """Everything that makewhole has of a key: rows of the journal by what they are, files with rows, records in
    archives, plans. `filters`: files that may say that a log has it. `half_written`: files that may have it, which
    attempts that died left. `unsearched`: archives that may have it, and cannot be searched."""

    journal: Mapping[str, int]
    files: tuple[RowsOfKey, ...]
    archives: Mapping[str, int]
    filters: tuple[str, ...]
    plans: tuple[PlanOfKey, ...]
    payloads: Mapping[str, str]
    half_written: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing."""
        return not (any(self.journal.values()) or self.files or self.archives)

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "journal": dict(self.journal),
            "files": [{"path": rows.path, "rows": rows.rows} for rows in self.files],
            "archives": dict(self.archives),
            "filters": list(self.filters),
            "half_written": list(self.half_written),
            "unsearched": list(self.unsearched),
            "plans": [{"id": plan.id, "actions": len(plan.seqs), "targets": list(plan.targets)} for plan in self.plans],
        }


@dataclass(frozen=True, kw_only=True)
class ErasureDone:
    """Result of an erasure: what there was, and what stays (sentences)."""

    erasure: int
    key_mac: str
    holdings: Holdings
    rows_at_targets: int
    stays: tuple[str, ...] = field(default=())


def holdings_of(context: ErasureContext, key: ErasedKey, before: frozenset[str]) -> Holdings:
    """Find everything that makewhole has of a key; nothing is changed.

    `before` are the files that were there before nothing was at work: what is half written of them stays so. Others may
    be of windows that were opened since.

    Raises:
        CorruptionError: an archive, or another file that the journal names and that may hold it, cannot be read.
        TransientError: the journal or the storage does not answer.
    """
    storage = context.storage
    with context.journal.transaction(idle_seconds=60) as journal:
        in_journal, plans = erasures.count_rows(journal, key), erasures.plans_of_key(journal, key)
    files = _own_files(storage, key.pipeline)
    searched = search_files(storage, files, key)
    rows, segments = searched.rows, segments_of(storage, files)
    rewritten = list(rewritten_segments(storage, segments, positions_of(rows, segments)))
    paths = {file.path for file in files}
    damaged = {**searched.unreadable, **unreadable_segments(storage, paths)}
    left = {path: error for path, error in damaged.items() if path in before}
    with context.journal.transaction(idle_seconds=60) as journal:
        require_unnamed(journal, storage, key.pipeline, left)
        unsearched = unsearchable_archives(journal, key, paths)
    payloads = {plan.id: path for plan in plans if (path := payload_path(storage, files, plan)) is not None}
    return Holdings(
        journal=in_journal,
        files=rows,
        archives={path: segment.records for segment in rewritten for path in segment.contents},
        filters=tuple(_filters_of_tails(files, key.pipeline)),
        plans=tuple(plans),
        payloads=payloads,
        unsearched=tuple(unsearched),
        half_written=tuple(sorted({*left, *before.intersection(unfinished_files(paths))})),
    )


def _filters_of_tails(files: list[StoredFile], pipeline: str) -> list[str]:
    """Return the filters of what was read of logs behind windows: they only save reading."""
    return [file.path for file in files if file.path.startswith(f"{pipeline}/tails/")]


def erase_key(context: ErasureContext, request: EraseRequest) -> ErasureDone:
    """Erase a key.

    Raises:
        RefusedError: a window is open, or a plan or a question waits.
        CorruptionError: an archive that holds it cannot be read.
        TransientError: a system does not answer, files are being merged or removed, or a window or a plan began
            meanwhile; ask again, and it goes on.
    """
    before = paths_below(context.storage, request.pipeline.name)
    try:
        with context.journal.transaction() as journal:
            require_files(journal, request.pipeline.name)
            erasure = erasures.begin(journal, request.erased, request.reason, request.asked_by)
        return _erase(context, request, erasure, before)
    finally:
        leave_files(context.journal)


def paths_below(storage: Storage, pipeline: str) -> frozenset[str]:
    """Return the files of a pipeline, to be listed before it is known that nothing is at work (`holdings_of`)."""
    return frozenset(file.path for file in _own_files(storage, pipeline))


def _own_files(storage: Storage, pipeline: str) -> list[StoredFile]:
    """Return the files of a pipeline without those that are published for everyone."""
    published = f"{published_below(pipeline)}/"
    return [file for file in storage.files_below(pipeline) if not file.path.startswith(published)]


def _erase(context: ErasureContext, request: EraseRequest, erasure: Erasure, before: frozenset[str]) -> ErasureDone:
    key = request.erased
    holdings = holdings_of(context, key, before)
    at_targets = erase_at_targets(context.journal, request.pipeline, context.connections, holdings.plans)
    for path in holdings.half_written:
        _note(context, erasure, path, context.storage.sha256(path), None)
        context.storage.remove(path)
    _rewrite_archives(context, erasure, key, holdings)
    payloads = _rewrite_payloads(context, erasure, holdings)
    _renew_filters(context, erasure, holdings)
    for rows in holdings.files:
        _rewrite_rows(context, erasure, rows, key)
    for path in holdings.filters:
        context.storage.remove(path)
    stays = (*at_targets.stays, *_beyond_reach(request.pipeline), *_unsearched(holdings))
    _end(context, erasure, key, holdings, payloads, AtTargets(rows=at_targets.rows, stays=stays))
    return ErasureDone(
        erasure=erasure.id,
        key_mac=erasure.key_mac,
        holdings=holdings,
        rows_at_targets=at_targets.rows,
        stays=stays,
    )


def _beyond_reach(pipeline: Pipeline) -> list[str]:
    """Return what is published for everyone, and is not taken back."""
    names = ", ".join(sorted(publish.point for publish in pipeline.publish))
    return [f"records of {names} that were published for everyone stay where they were published"] if names else []


def _unsearched(holdings: Holdings) -> list[str]:
    return [
        f"{path} cannot be searched for the key, as the keys of its snapshot were removed: remove the archive, too"
        for path in holdings.unsearched
    ]


def _rewrite_archives(context: ErasureContext, erasure: Erasure, key: ErasedKey, holdings: Holdings) -> None:
    files = context.storage.files_below(key.pipeline)
    segments = segments_of(context.storage, files)
    for segment in rewritten_segments(context.storage, segments, positions_of(holdings.files, segments)):
        for path, content in segment.contents.items():
            _replace(context, erasure, path, content)


def _rewrite_payloads(context: ErasureContext, erasure: Erasure, holdings: Holdings) -> dict[str, str | None]:
    """Write the payloads of plans again without those of a key; return the SHA-256 of the files of now by plan."""
    hashes = {plan.id: plan.payload_sha256 for plan in holdings.plans}
    for plan in holdings.plans:
        path = holdings.payloads.get(plan.id)
        if path is not None:
            content = payloads_without(context.storage, path, plan.seqs)
            _replace(context, erasure, path, content)
            hashes[plan.id] = sha256(content).hexdigest()
    return hashes


def _replace(context: ErasureContext, erasure: Erasure, path: str, content: bytes) -> None:
    """Put a file in the place of another one, which is noted first."""
    before, became = context.storage.sha256(path), sha256(content).hexdigest()
    if before == became:
        return
    beside = unfinished_path(path)
    context.storage.write_bytes(beside, content)
    _note(context, erasure, path, before, became)
    context.storage.put_in_place(beside, path)


def _rewrite_rows(context: ErasureContext, erasure: Erasure, rows: RowsOfKey, key: ErasedKey) -> None:
    instead = write_without(context.storage, rows, key)
    _note(context, erasure, rows.path, context.storage.sha256(rows.path), instead.sha256)
    context.storage.remove(filter_path(rows.path))  # killed from here on, no filter knows the key
    context.storage.put_in_place(instead.path, rows.path)
    renew_filter(context.storage, rows)


def _renew_filters(context: ErasureContext, erasure: Erasure, holdings: Holdings) -> None:
    """Make the filters of files of the key index that this erasure wrote again before it was killed."""
    with context.journal.transaction() as journal:
        written = erasures.done(journal, erasure)["files"]
    for path in sorted(written.keys() - {rows.path for rows in holdings.files}):
        rows = RowsOfKey(path=path, rows=0)
        if rows.is_index and written[path]["became"] is not None:
            renew_filter(context.storage, rows)


def _note(context: ErasureContext, erasure: Erasure, path: str, before: str, became: str | None) -> None:
    with context.journal.transaction() as journal:
        require_files(journal, path.split("/", 1)[0])
        erasures.note_file(journal, erasure, path, before, became)


def _end(
    context: ErasureContext,
    erasure: Erasure,
    key: ErasedKey,
    holdings: Holdings,
    payloads: Mapping[str, str | None],
    at_targets: AtTargets,
) -> None:
    """Take the key out of the journal, and sign what was done, in one transaction.

    Raises:
        TransientError: what began since the key was searched for may have it.
    """
    assert context.signing_key is not None
    with context.journal.transaction(idle_seconds=60) as journal:
        require_files(journal, key.pipeline)
        erasures.require_complete(journal, key, holdings.plans)
        for plan in holdings.plans:
            erasures.forget_actions(journal, erasure, key, plan, payloads[plan.id])
            erasures.note_plan(journal, erasure, plan, hash_of_now(journal, key.pipeline, plan, payloads[plan.id]))
        erasures.forget_rows(journal, erasure, key)
        body = {
            "format": FORMAT,
            "erasure": erasure.id,
            "pipeline": key.pipeline,
            "key_mac": erasure.key_mac,
            "spares": list(erasure.spares),
            "asked_by": erasure.asked_by,
            "asked_at": erasure.asked_at.isoformat(),
            "erased_at": datetime.now(UTC).isoformat(),
            "reason": erasure.reason,
            "journal": dict(holdings.journal),
            "rows_at_targets": at_targets.rows,
            "stays": list(at_targets.stays),
            **erasures.done(journal, erasure),
            "signed_by": context.signing_key.public.id,
        }
        erasures.end(journal, erasure, body, context.signing_key.public.id, context.signing_key.sign(body))
