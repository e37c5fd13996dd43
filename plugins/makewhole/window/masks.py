"""Return the mask of a hop, of a finding, or of a pipeline, with the key of the storage."""

import secrets
from collections.abc import Mapping
from typing import Any

from makewhole.lake.mask_key import ensure_mask_key, find_mask_key, read_mask_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.verdict import Finding
from makewhole.signing.mask import KEY_BYTES, MASKED, Mask


def prepare_mask(pipeline: Pipeline, storage: Storage) -> None:
    """Make the key of the storage when the pipeline masks columns and there is none."""
    if pipeline.mask:
        ensure_mask_key(storage)


def mask_on(pipeline: Pipeline, hop: Hop, storage: Storage | None = None) -> Mask | None:
    """Return the mask of what is said of keys on a hop; None: the hop compares no masked column. `storage` None: that
    of the environment.

    Raises:
        CorruptionError: the key is gone.
    """
    columns = frozenset(pipeline.mask) & frozenset(compared_on(pipeline, hop))
    return Mask(columns=columns, key=read_mask_key(storage or Storage.from_environment())) if columns else None


def mask_of_rows(pipeline: Pipeline, storage: Storage) -> Mask | None:
    """Return the mask of rows at any place of a pipeline; None: it masks nothing. The key is made where there is none.

    Raises:
        CorruptionError: what is there is no key.
    """
    return Mask(columns=frozenset(pipeline.mask), key=ensure_mask_key(storage)) if pipeline.mask else None


def mask_of(finding: Finding, storage: Storage | None = None) -> Mask | None:
    """Return the mask that the evidence of a finding was written with; None: nothing in it is masked. `storage` None:
    that of the environment.

    Raises:
        CorruptionError: its key is gone, or another one is in its place.
    """
    mark: Mapping[str, Any] | None = finding.evidence.get(MASKED)
    if mark is None:
        return None
    there = storage or Storage.from_environment()
    mask = Mask(columns=frozenset(mark["columns"]), key=read_mask_key(there))
    if mask.id != mark["key"]:
        raise CorruptionError(
            f"a finding on {finding.hop} was masked with key {mark['key']}, and {there.uri('mask.key')} "
            f"is key {mask.id}: restore the one before, or run the window again"
        )
    return mask


def row_hash_of(finding: Finding, storage: Storage | None = None) -> int | None:
    """Return the hash of the values by which a finding was judged; None: it has none. Raises as `mask_of`."""
    text, mask = finding.evidence.get("row_hash"), mask_of(finding, storage)
    if text is None:
        return None
    return int(text) if mask is None else mask.unseal(text)


class ShownValues:
    """The values of a pipeline as people see them: of masked columns digests, and of every column where the pipeline's
    file is not known (`pipeline` None). Where the storage has no key yet, or is not known (None), these are made with a
    key of this object alone."""

    def __init__(self, pipeline: Pipeline | None, storage: Storage | None) -> None:
        columns = None if pipeline is None else frozenset(pipeline.mask)
        hides = columns is None or bool(columns)
        key = find_mask_key(storage) if hides and storage is not None else None
        self._mask = Mask(columns=columns, key=key or secrets.token_bytes(KEY_BYTES)) if hides else None

    def values(self, values: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return values by column as they are shown."""
        return dict(values) if self._mask is None else self._mask.values(values)

    def evidence(self, evidence: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the evidence of a finding as it is shown: what was written before a column was masked has it in
        clear."""
        return evidence if self._mask is None else self._mask.evidence(evidence)
