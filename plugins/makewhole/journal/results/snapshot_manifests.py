"""Read and write the manifests with which the snapshots of windows exist."""

from collections.abc import Mapping
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.window import Window
from makewhole.sql import PgConnection, statements_of

_run = statements_of("snapshot")

KEYS_BY_PARTS = "keys_by_parts"
"""The entry of a table of which the rows of keys are found by reading each part once."""
LOOKED_AT = "looked_at"
"""The entry of a store's manifest that says, by hop, which keys of earlier windows were looked at: the first and the
last of their `windows`, the number of `keys`, of `rows` that differ with their `files`, the windows whose snapshots are
`gone` or were `read_with_other_configuration`, and the place in the round that is `next`."""

NEVER_VALUED = "never_valued"
"""The entry of a manifest with the compared columns of which nothing that was read has a value, where anything more
than tombstones was."""
VALUES_OF = "values_sha256"
"""The entry of a manifest that says what its hashes of values and its versions are of."""

FILTERS = "filters"
"""The entry of a manifest with the filters that its rows were held against: hop → the digest of its filter, of the
places of its columns and of their types."""

FILTER_TYPES = "filter_types"
"""The entry of a manifest that says by which types columns were compared with the literals of filters."""

PLACE = "place"
"""The entry of a table's manifest that says where it stood: what was seen of it means nothing elsewhere."""

READ_AS = "read_as"
"""The entry of a manifest that says, by digests, what decides its files besides the data."""

REUSED = "reused"
"""The entry of a manifest whose files an earlier `revision` wrote: `because` says what shows that they are the same."""

NOT_REUSED = "not_reused"
"""The entry of a manifest that says why an earlier revision's files were not shown to be what would be read."""

MARK = "mark"
"""The entry of a table's manifest by which a later revision shows that its rows are the same: what has to be the same
of the `table`, the number of `rows` that were sent, and of those `in_slice`."""


def commit_snapshot(journal: PgConnection, window: Window, point: str, manifest: Mapping[str, Any]) -> bool:
    """Write the manifest with which a snapshot exists; the first one stays. Returns whether it was this one."""
    return bool(_run(journal, "insert_snapshot", **scope(window), point=point, manifest=Json(manifest)))


def snapshots(journal: PgConnection, window: Window) -> dict[str, dict[str, Any]]:
    """Return the committed manifests of this revision by point."""
    return dict(_run(journal, "snapshots", **scope(window)))


def fullest_snapshots(journal: PgConnection, window: Window) -> dict[str, dict[str, Any]]:
    """Return manifests of the window by point: those of the compared revision (`revision`) that could read most of its
    offsets."""
    return dict(_run(journal, "fullest_snapshots", pipeline=window.pipeline, number=window.number))


def snapshots_before(journal: PgConnection, window: Window, point: str) -> list[dict[str, Any]]:
    """Return the manifests of a point that earlier compared revisions of the window committed (`revision`), oldest
    first."""
    asked = {**scope(window), "last_before": window.last_before}
    return [manifest for (manifest,) in _run(journal, "snapshots_before", **asked, point=point)]


def newest_before(journal: PgConnection, window: Window) -> list[tuple[str, int, dict[str, Any]]]:
    """Return by point the newest manifest that earlier revisions of the window committed, with its revision."""
    return [(row.point, row.revision, row.manifest) for row in _run(journal, "newest_before", **scope(window))]


def what_was_reused(manifests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each point that an earlier revision had read: which one's files a manifest names, and what
    showed that these are what would be read; or why the point was read again."""
    sentences = list[str]()
    for point, manifest in sorted(manifests.items()):
        if REUSED in manifest:
            reused = manifest[REUSED]
            sentences.append(f"{point}: reused from revision {reused['revision']}, as {reused['because']}")
        elif NOT_REUSED in manifest:
            sentences.append(f"{point}: read again, as {manifest[NOT_REUSED]}")
    return sentences


def looked_at(manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the manifests of a window say of the keys of earlier windows that were looked at, by store and hop;
    `until`: the last window of the round."""
    shown = ("windows", "keys", "rows", "gone", "read_with_other_configuration")
    return {
        store: {
            hop: {name: look[name] for name in shown} | {"until": look["next"]["until"]}
            for hop, look in sorted(manifest[LOOKED_AT].items())
        }
        for store, manifest in sorted(manifests.items())
        if LOOKED_AT in manifest
    }


def says_what_passes(manifest: Mapping[str, Any], own: Mapping[str, Any], hop: str) -> bool:
    """Return whether the rows behind a manifest were held against the filter that a hop has in one's `own`."""
    now = own.get(FILTERS, {}).get(hop)
    return now is not None and manifest.get(FILTERS, {}).get(hop) == now


def seen_at(manifest: Mapping[str, Any], place: str | None) -> str | None:
    """Return what the view had seen under which a table was read; None: it stood in another place than this one."""
    seen: str | None = manifest["pg_snapshot"]
    return seen if manifest.get(PLACE) == place else None


def filtered_with(manifest: Mapping[str, Any]) -> tuple[str | None, Mapping[str, str]]:
    """Return by what the filters behind a snapshot were evaluated: the file, and the types of the columns."""
    return read_with(manifest), manifest.get(FILTER_TYPES, {})


def read_with(manifest: Mapping[str, Any]) -> str | None:
    """Return the digest of the configuration that a snapshot was read with, by its manifest."""
    digest: str | None = manifest.get("reading_sha256")
    return digest
