"""Follow one key through its pipeline: every point in order, every window, every plan.

Nothing is judged here. What cannot be read (a database that does not answer, a snapshot whose file is gone) is
reported with what was found, and does not stop the rest.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from makewhole.compute.buckets import FINEST, bucket_name
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem, key_hash, key_text, split_hex
from makewhole.journal import acceptances, key_history, windows
from makewhole.journal.acceptances import KeyWord
from makewhole.journal.key_history import Judgement, KeyAction
from makewhole.journal.results import hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.journey.copies import JourneyCopy, copies_in, read_manifests, rows_now, with_snapshots
from makewhole.journey.sums import KeySums, key_sums
from makewhole.kinds import tables_of
from makewhole.lake.storage import Storage
from makewhole.lake.stored_verdicts import FilesByBucket, VerdictFiles, stored_verdicts
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType, Point, PointKind, TablePoint, can_look_up
from makewhole.model.verdict import Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape
from makewhole.window.masks import ShownValues

ConnectionOf = Callable[[str], Connection]
"""How a connection is found by its id; raises ConfigurationError when it is not."""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One point of a journey. `searched` says where the key was looked for, `problems` where it could not be, `outside`
    where rows of it are that its table does not have."""

    point: str
    kind: PointKind
    system: str
    copies: tuple[JourneyCopy, ...]
    searched: tuple[str, ...]
    problems: tuple[str, ...] = ()
    outside: tuple[RowOutside, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Journey:
    """All that is known of one key: `stops` in the pipeline's order, `judgements`, `actions` and the `words` of people
    oldest first. `superseded`: those of the judgements whose hop a newer revision of their window has judged, too.
    `sums`: of hops to stores of sums, what the records add up to."""

    pipeline: str
    key: str
    key_hash: str
    stops: tuple[Stop, ...]
    judgements: tuple[Judgement, ...]
    actions: tuple[KeyAction, ...]
    words: tuple[KeyWord, ...] = ()
    superseded: tuple[Judgement, ...] = ()
    sums: tuple[KeySums, ...] = ()

    @property
    def is_known(self) -> bool:
        return bool(self.judgements or self.actions) or any(stop.copies for stop in self.stops)


def business_key(pipeline: Pipeline, text: str, *, spares: Collection[str] = ()) -> str:
    """Return the key that a person wrote, in its one spelling: several components are a JSON array of strings, and each
    is read by its type. Where chains of points have keys of different kinds, by the first that it fits; `spares`: the
    points of chains that it is not of.

    Raises:
        ConfigurationError: it cannot be a key of this pipeline.
    """
    points = [point for point in pipeline.ordered_points() if point.name not in spares]
    layouts = dict.fromkeys(point.key_layout or (KeyType.STRING,) * len(point.key) for point in points)
    reasons = list[str]()
    for kinds in layouts:
        try:
            return key_text([part_text(part, kind) for part, kind in zip(_parts(text, kinds), kinds, strict=True)])
        except KeyProblem as unfit:
            reasons.append(str(unfit))
    why, parts = next(filter(None, reasons), ""), len(points[0].key)
    example = "the key's text" if parts == 1 else json.dumps([f"part {at}" for at in range(1, parts + 1)])
    problem = Problem(
        file="command line",
        path="KEY",
        found=f"is no key of pipeline {pipeline.name}{f': {why}' if why else ''}",
        remedy=f"Write {example}, as `makewhole findings` shows keys",
    )
    raise ConfigurationError([problem])


def _parts(text: str, kinds: Sequence[KeyType]) -> list[str]:
    """Return the components of a key as a person wrote it.

    Raises:
        KeyProblem: they are not as many, or no texts.
    """
    components = [text] if len(kinds) == 1 else _array(text)
    are_texts = all(isinstance(part, str) and part and _is_unicode(part) for part in components)
    if len(components) != len(kinds) or not are_texts:
        raise KeyProblem
    return components


def _array(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: a shell can pass bytes that are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def trace(
    journal: PgConnection, pipeline: Pipeline, storage: Storage, connection_of: ConnectionOf, key: str
) -> Journey:
    """Return the journey of a key, from the tables as they are now, the newest snapshots of every window, and the
    journal."""
    hashed, shown = key_hash(key), ShownValues(pipeline, storage)
    bucket = bucket_name(split_hex(hashed)[0], FINEST)
    seen = [_seen(journal, pipeline, storage, window, bucket, hashed) for window in _windows(journal, pipeline)]
    judgements = [_shown_judgement(item, shown) for item in key_history.judgements(journal, pipeline.name, hashed)]
    others = [item for held in seen for item in _without_finding(journal, storage, pipeline, held, judgements, hashed)]
    stops = tuple(_stop(pipeline, point, seen, connection_of, key) for point in pipeline.ordered_points())
    return Journey(
        pipeline=pipeline.name,
        key=key,
        key_hash=hashed,
        stops=tuple(_shown(stop, shown) for stop in stops),
        judgements=tuple(sorted([*judgements, *others], key=lambda item: (item.window, item.revision, item.hop))),
        actions=tuple(key_history.key_actions(journal, pipeline.name, hashed)),
        words=tuple(acceptances.words_on_key(journal, pipeline.name, hashed)),
        superseded=tuple(_superseded(journal, [held.window for held in seen], judgements)),
        sums=tuple(_sums(pipeline, stops)),
    )


def _sums(pipeline: Pipeline, stops: Sequence[Stop]) -> Iterator[KeySums]:
    """Yield what the records of the key add up to, of each hop to a store of sums that could be looked at."""
    copies = {stop.point: stop.copies for stop in stops if stop.searched and not stop.problems}
    for hop in pipeline.hops:
        is_known = hop.source in copies and hop.target in copies
        sums = key_sums(pipeline, hop, copies[hop.source], copies[hop.target]) if is_known else None
        if sums is not None and (copies[hop.source] or copies[hop.target]):
            yield sums


@dataclass(frozen=True, kw_only=True)
class _WindowCopies:
    """The copies of the key in the snapshots of one window, by point; `problems` by point. `slices`: each point's files
    by bucket."""

    window: Window
    slices: Mapping[str, FilesByBucket]
    copies: Mapping[str, list[JourneyCopy]]
    problems: Mapping[str, str]


def _windows(journal: PgConnection, pipeline: Pipeline) -> list[Window]:
    """Return every window, oldest first, in its newest revision that has snapshots."""
    return [with_snapshots(journal, window) for window in reversed(windows.newest(journal, pipeline.name))]


def _seen(
    journal: PgConnection, pipeline: Pipeline, storage: Storage, window: Window, bucket: str, hashed: str
) -> _WindowCopies:
    manifests = read_manifests(journal, window)
    copies: dict[str, list[JourneyCopy]] = {}
    problems: dict[str, str] = {}
    for name in (point.name for point in pipeline.ordered_points()):
        if name not in manifests:
            problems[name] = f"window {window.number} has no snapshot of it"
            continue
        try:
            held = copies_in(storage, manifests[name], bucket, hashed)
        except MakewholeError as error:
            problems[name] = f"window {window.number}: {error}"
            continue
        revision = int(manifests[name].get("revision", window.revision))
        copies[name] = [replace(copy, window=window.number, revision=revision) for copy in held]
    slices = {name: manifest["files"] for name, manifest in snapshot_manifests.snapshots(journal, window).items()}
    return _WindowCopies(window=window, slices=slices, copies=copies, problems=problems)


def _superseded(
    journal: PgConnection, newest: Sequence[Window], judgements: Sequence[Judgement]
) -> Iterator[Judgement]:
    """Return those of the judgements whose hop was judged again in the newest revision of their window."""
    revisions = {window.number: window for window in newest}
    judged: dict[int, Collection[str]] = {}
    for item in judgements:
        window = revisions.get(item.window)
        if window is None or item.revision >= window.revision:
            continue
        if item.window not in judged:
            judged[item.window] = key_history.judged_at(journal, window)
        if item.hop in judged[item.window]:
            yield item


def _shown_judgement(item: Judgement, shown: ShownValues) -> Judgement:
    return item if item.evidence is None else replace(item, evidence=shown.evidence(item.evidence))


def _shown(stop: Stop, shown: ShownValues) -> Stop:
    """Return a stop with the values of its copies as people see them."""
    return replace(stop, copies=tuple(replace(copy, values=shown.values(copy.values)) for copy in stop.copies))


def _stop(pipeline: Pipeline, point: Point, seen: list[_WindowCopies], connection_of: ConnectionOf, key: str) -> Stop:
    if can_look_up(point):
        return _table_stop(pipeline, point, connection_of, key)
    searched = tuple(f"the snapshot of window {held.window.number}" for held in seen if point.name in held.copies)
    return Stop(
        point=point.name,
        kind=point.kind,
        system=f"topic {point.topic}",
        copies=tuple(copy for held in seen for copy in held.copies.get(point.name, ())),
        searched=searched,
        problems=tuple(held.problems[point.name] for held in seen if point.name in held.problems),
    )


def _table_stop(pipeline: Pipeline, point: TablePoint, connection_of: ConnectionOf, key: str) -> Stop:
    stop = Stop(point=point.name, kind=point.kind, system=f"table {point.table}", copies=(), searched=())
    try:
        tables = tables_of(connection_of(point.connection))
        rows = rows_now(tables, pipeline, point, key)
    except MakewholeError as error:
        return replace(stop, problems=(str(error),))
    stop = replace(stop, copies=tuple(rows), searched=("the table as it is now",))
    try:
        shape = TableShape(point=point, compare=pipeline.compare, filters={})
        outside = () if rows else tuple(tables.rows_outside(shape, [key]).get(key, ()))
    except MakewholeError as error:
        return replace(stop, problems=(str(error),))
    return replace(stop, outside=outside)


def _without_finding(
    journal: PgConnection,
    storage: Storage,
    pipeline: Pipeline,
    seen: _WindowCopies,
    judgements: list[Judgement],
    hashed: str,
) -> Iterator[Judgement]:
    """Return the verdicts that are no findings, on the hops of a window that holds the key, or was left it."""
    window = seen.window
    judged = {(item.window, item.revision, item.hop) for item in judgements}
    left = {(item.window, item.hop) for item in judgements if item.verdict == Verdict.PENDING.value}
    times: dict[str, datetime] = {}
    results: dict[str, Any] = {}
    for hop in pipeline.hops:
        is_ours = seen.copies.get(hop.source) or seen.copies.get(hop.target) or (window.number - 1, hop.name) in left
        if (window.number, window.revision, hop.name) in judged or not is_ours:
            continue
        results = results or hop_results.results(journal, window)
        times = times or key_history.judged_at(journal, window)
        files = _verdict_files(seen, hop, results, hashed)
        verdict = None if files is None else _stored_verdict(storage, files, hashed)
        if verdict is not None:
            yield Judgement(
                window=window.number,
                revision=window.revision,
                hop=hop.name,
                verdict=verdict,
                judged_at=times.get(hop.name),
            )


def _verdict_files(seen: _WindowCopies, hop: Hop, results: Mapping[str, HopResult], hashed: str) -> VerdictFiles | None:
    """Return the files that hold the verdict on a key; None where the hop was not judged."""
    if hop.name not in results:
        return None
    bucket = bucket_name(split_hex(hashed)[0], FINEST)
    slices = [seen.slices.get(name, {}) for name in (hop.source, hop.target)]
    return VerdictFiles.of(hop.name, results[hop.name].files, slices, bucket)


def _stored_verdict(storage: Storage, files: VerdictFiles, hashed: str) -> str | None:
    """Return the verdict on the key by the files of a window; None where they have none, or are gone."""
    try:
        verdicts = stored_verdicts(storage, files, [hashed])
    except MakewholeError:
        return None
    return None if verdicts.is_empty() else str(verdicts["verdict"][0])
