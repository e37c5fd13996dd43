"""Choose the keys of earlier windows whose rows a window looks at: a bounded share of them, in rounds.

A row that was changed behind its record, with its time left or moved back, lies in no window's slice. So each window
also reads the rows of some keys that the windows before read at the source of a hop, and those that differ are judged
with its own (`makewhole.compute.judge.rewritten_rows`). A round goes through the windows that were judged when it
began, the oldest first, each in shares by key hash: it takes as many windows as it has keys, divided by those of one
window, and each key of it is looked at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.compute.buckets import FINEST, bucket_name, files_of_bucket
from makewhole.compute.indexed_keys.former_readings import compared_number
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.key_index.runs import IndexedTopic, first_indexed
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.hop_results import first_of_hop
from makewhole.journal.results.snapshot_manifests import LOOKED_AT, VALUES_OF
from makewhole.model.hops import Hop
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.points import TablePoint
from makewhole.signing.keys import sha256_of
from makewhole.sql import PgConnection
from makewhole.tables.reading import BYTES_WITHOUT_INDEX, TableView
from makewhole.window.configuration import configuration_document
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.read_piece import PieceRead
from makewhole_spark.snapshot.table_bounds import previous_window

_KEYS_OF_A_SHARE = 20_000
_SHARES_MOST = 10
_OWN_PART = 8
_WINDOWS_MOST = 32

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Share:
    """The keys of a bucket in a window's snapshot of a source, and the files that hold them, among others."""

    window: int
    bucket: str
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RoundPlace:
    """How far a round has come: the share of a window that is next, of so many; `until`: the last window of it."""

    window: int
    share: int = 0
    shares: int = 1
    until: int

    @property
    def is_over(self) -> bool:
        return self.window > self.until


@dataclass(frozen=True, kw_only=True)
class Look:
    """Holds the shares that a window looks at on a hop, how far the round has come then, and the windows that are left
    out: their values are of other columns, or were read otherwise."""

    hop: Hop
    shares: tuple[Share, ...]
    next: RoundPlace
    read_with_other_configuration: tuple[int, ...] = ()

    def document(self, answers: Sequence[PieceRead]) -> dict[str, Any]:
        """Return what the manifest says: the windows, the number of keys, of rows that differ with their files, the
        windows whose snapshots are gone, and how far the round has come."""
        numbers = [share.window for share in self.shares]
        return {
            "windows": [min(numbers), max(numbers)] if numbers else [],
            "keys": sum(answer.looked_at for answer in answers),
            "rows": sum(answer.rows for answer in answers),
            "files": sorted(path for answer in answers for _, path in answer.files),
            "gone": sorted({number for answer in answers for number in answer.gone}),
            "read_with_other_configuration": list(self.read_with_other_configuration),
            "next": vars(self.next),
        }


def values_sha256(pipeline: Pipeline, point: str) -> str:
    """Return the digest of what decides the values and versions that are read at a point."""
    written = configuration_document(pipeline)["points"][point]
    return sha256_of({"point": written, "compared": f"{compared_number(columns_read_at(pipeline, point)):016x}"})


def hops_looked_at(pipeline: Pipeline, point: TablePoint) -> list[Hop]:
    """Return the hops into a store. Of each source something says which row of a key counts: an index of keys, or of
    versions the ledger itself."""
    return [hop for hop in pipeline.hops if hop.target == point.name]


@dataclass(frozen=True, kw_only=True)
class StoreCensus:
    """Hold what a window looks at in a store, by hop, and the incidents that say why it does not."""

    point: TablePoint
    looks: tuple[Look, ...] = ()
    incidents: tuple[Incident, ...] = ()

    def manifest(self, answers: Sequence[tuple[str, PieceRead]]) -> dict[str, Any]:
        """Return what the store's manifest says; `answers` of the tasks, each with its hop."""
        documents = {
            look.hop.name: look.document([answer for hop, answer in answers if hop == look.hop.name])
            for look in self.looks
        }
        return {LOOKED_AT: documents} if documents else {}


def store_census(
    journal: PgConnection,
    view: TableView,
    context: WindowContext,
    point: TablePoint,
    manifests: Mapping[str, Manifest],
) -> StoreCensus:
    """Choose the keys of earlier windows whose rows in a store are looked at. `view` is of the store; `manifests`
    are those of this window."""
    hops = hops_looked_at(context.pipeline, point)
    last = previous_window(journal, context) if hops else None
    if last is None:
        return StoreCensus(point=point)
    reason = _why_not(view)
    if reason is not None:
        detail = {"reason": reason, "key": list(point.key)}
        kind = IncidentKind.VALUES_NOT_LOOKED_AT
        incident = Incident(kind=kind, point=point.name, topic=point.table, topic_id="", detail=detail)
        return StoreCensus(point=point, incidents=(incident,))
    before = snapshot_manifests.snapshots(journal, last).get(point.name, {}).get(LOOKED_AT, {})
    rounds = (_HopRound(journal=journal, context=context, hop=hop, before=before.get(hop.name)) for hop in hops)
    looks = (hop_round.look(manifests.get(hop_round.hop.source, {}).get("rows", 0)) for hop_round in rounds)
    return StoreCensus(point=point, looks=tuple(look for look in looks if look is not None))


def _why_not(view: TableView) -> str | None:
    """Return why rows of known keys cannot be looked at without reading all of a large table; None where they can."""
    if not view.has_places:
        return "view"
    if view.size_bytes <= BYTES_WITHOUT_INDEX or view.has_key_index:
        return None
    return "no_key_index"


@dataclass(frozen=True, kw_only=True)
class _HopRound:
    """The round of a hop's known keys; `before`: what the window before says of it."""

    journal: PgConnection
    context: WindowContext
    hop: Hop
    before: Manifest | None

    def look(self, own_rows: int) -> Look | None:
        """Return what is looked at, `own_rows`: the number of records or rows of the source in this window; None where
        no window before it is known."""
        place = self._place()
        if place is None:
            return None
        numbers = range(place.window, min(place.until, place.window + _WINDOWS_MOST - 1) + 1)
        read = JudgedWindows(journal=self.journal, pipeline=self.context.pipeline.name).fullest_manifests(numbers)
        of_source = {number: points[self.hop.source] for number, points in read.items() if self.hop.source in points}
        alike = {number: manifest for number, manifest in of_source.items() if self._is_alike(manifest)}
        chosen, after = shares_to_look_at(alike, place, numbers, budget(own_rows))
        otherwise = tuple(number for number in sorted(of_source) if number not in alike and number < after.window)
        return Look(hop=self.hop, shares=tuple(chosen), next=after, read_with_other_configuration=otherwise)

    def _place(self) -> RoundPlace | None:
        """Return where the window goes on; None where no window before it is known."""
        newest, first = self.context.window.number - 1, self._first_known()
        place = None if self.before is None else RoundPlace(**self.before["next"])
        if place is None or place.is_over or place.until > newest:
            place = RoundPlace(window=first, until=newest)
        elif place.window < first:
            place = RoundPlace(window=first, until=place.until)
        return None if place.is_over else place

    def _first_known(self) -> int:
        """Return the first window that had the hop, and whose keys the index of its source knows."""
        pipeline, window = self.context.pipeline, self.context.window
        indexed = first_indexed(self.journal, IndexedTopic(pipeline=pipeline.name, point=self.hop.source))
        first = max(indexed, first_of_hop(self.journal, pipeline.name, self.hop.name) or window.number)
        if pipeline.history is None or window.start is None:
            return first
        judged = JudgedWindows(journal=self.journal, pipeline=pipeline.name)
        return max(first, judged.number_ending_after(window.start - pipeline.history) or window.number)

    def _is_alike(self, manifest: Manifest) -> bool:
        """Return whether the values and keys of a snapshot can be compared with those that are read now."""
        now = self.context.pipeline.points[self.hop.source].key_layout
        is_same = manifest.get(VALUES_OF) == values_sha256(self.context.pipeline, self.hop.source)
        return is_same and manifest.get("key_layout") == [kind.value for kind in now]


def budget(rows: int) -> int:
    """Return at how many keys a window looks whose source has so many records or rows: an eighth, within bounds."""
    return min(max(_KEYS_OF_A_SHARE, rows // _OWN_PART), _SHARES_MOST * _KEYS_OF_A_SHARE)


def shares_of(rows: int) -> int:
    """Return into how many shares a snapshot of so many rows is divided: a power of two."""
    return min(FINEST, 1 << (max(1, -(-rows // _KEYS_OF_A_SHARE)) - 1).bit_length())


def shares_to_look_at(
    snapshots: Mapping[int, Manifest], place: RoundPlace, numbers: Sequence[int], most: int
) -> tuple[list[Share], RoundPlace]:
    """Return the shares of a source's snapshots from a place of the round on, together of at most so many rows (one
    share at least), and the place after them. `numbers`: the windows that are read at most."""
    chosen, rows = list[Share](), 0.0
    for number in numbers:
        snapshot = snapshots.get(number)
        shares = 1 if snapshot is None else shares_of(snapshot["rows"])
        first = place.share if (number, shares) == (place.window, place.shares) else 0
        for at in range(first, shares) if snapshot is not None else ():
            size = snapshot["rows"] / shares if snapshot is not None else 0
            if chosen and rows + size > most:
                return chosen, RoundPlace(window=number, share=at, shares=shares, until=place.until)
            bucket = bucket_name(at, shares)
            files = files_of_bucket(snapshot["files"], bucket) if snapshot is not None else ()
            chosen.append(Share(window=number, bucket=bucket, files=files))
            rows += size
    return chosen, RoundPlace(window=numbers[-1] + 1 if numbers else place.until + 1, until=place.until)
