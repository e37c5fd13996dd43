"""Remove archives, files of attempts that died, and the keys and evidence of findings of a window that is over."""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from makewhole.journal.retention import removable, removals
from makewhole.journal.retention.removable import RemovableWindow
from makewhole.journal.retention.removals import Amount, RemovalDecision
from makewhole.kafka.log.archive import REMOVED
from makewhole.key_index.files import filter_path
from makewhole.lake.give_name import UNFINISHED
from makewhole.lake.storage import StoredFile
from makewhole.model.retention import Kept
from makewhole.retention.house import House, Outcome
from makewhole.sql import PgConnection

_IN_WINDOW = re.compile(r"revision=(?P<revision>[0-9]+)/(?P<point>[^/]+)/")
_ARCHIVE = re.compile(r".*/revision=[0-9]+/[^/]+/archive(?=/)")


def remove_of_window(house: House, kind: Kept, window: RemovableWindow) -> Outcome | None:
    """Decide to remove a kind of a window's, remove it, and note that it is gone; return how much it was. What is not
    old enough yet is left to a later run, and so is a window that is needed again (None)."""
    if kind is Kept.FINDINGS:
        forgotten = _forget_findings(house, window)
        return None if forgotten is None else Outcome(kind=kind, window=window.number, amount=forgotten)
    of_kind = _archives(house, window) if kind is Kept.ARCHIVES else _unnamed(house, window)
    files = of_kind if kind is Kept.ARCHIVES else _old(house, of_kind)
    amount = Amount(files=len(files), size_bytes=sum(file.size_bytes for file in files))
    if not house.is_dry:
        with house.journal.transaction() as journal:
            decided = _decide(house, journal, window, kind, amount)
        if decided is None:
            return None
        if kind is Kept.ARCHIVES:
            _mark(house, files, decided)
        for file in files:
            house.storage.remove(file.path)
        if len(files) == len(of_kind):
            with house.journal.transaction() as journal:
                removals.done_of_window(journal, house.pipeline.name, window, kind)
    return Outcome(kind=kind, window=window.number, amount=amount)


def _decide(
    house: House, journal: PgConnection, window: RemovableWindow, kind: Kept, there: Amount
) -> RemovalDecision | None:
    """Decide to remove a kind of a window's; None: since it was listed, a revision of it was opened, or something else
    waits for it."""
    name = house.pipeline.name
    kept = dict(house.pipeline.keep)[kind]
    if not removable.is_removable(journal, name, window, kind, kept, house.published_to):
        return None
    return removals.decide_of_window(journal, name, window, kind, house.kept(kind), there)


def _forget_findings(house: House, window: RemovableWindow) -> Amount | None:
    name = house.pipeline.name
    with house.journal.transaction(idle_seconds=60) as journal:
        if house.is_dry:
            return Amount(rows=removable.count_findings(journal, name, window))
        there = Amount(rows=removable.count_findings(journal, name, window))
        decided = _decide(house, journal, window, Kept.FINDINGS, there)
        if decided is None:
            return None
        because = f"key and evidence were {decided.sentence}"
        amount = Amount(rows=removable.forget_findings(journal, name, window, because))
        removals.done_of_window(journal, name, window, Kept.FINDINGS)
        return amount


def _files(house: House, window: RemovableWindow) -> Iterator[StoredFile]:
    """Yield the files of the revisions of a window."""
    folder = f"{house.pipeline.name}/window={window.number}"
    for file in house.storage.files_below(folder):
        matched = _IN_WINDOW.match(file.path.removeprefix(f"{folder}/"))
        if matched is not None and int(matched["revision"]) <= window.revision:
            yield file


def _archives(house: House, window: RemovableWindow) -> list[StoredFile]:
    return [file for file in _files(house, window) if _ARCHIVE.match(file.path)]


def _mark(house: House, files: Sequence[StoredFile], decided: RemovalDecision) -> None:
    """Leave a mark beside each archive before its first file goes: whoever looks for it reads when it went, and why.
    That of an earlier decision, which was not carried out to its end, stays."""
    for archive in sorted({matched[0] for file in files if (matched := _ARCHIVE.match(file.path))}):
        mark = f"{archive}{REMOVED}"
        if house.storage.read_if_exists(mark) is None:
            house.storage.write_once(mark, f"records were {decided.sentence}".encode())


def _unnamed(house: House, window: RemovableWindow) -> list[StoredFile]:
    """Return the files of a window that nothing in the journal names: an attempt died, or was done with them."""
    with house.journal.transaction() as journal:
        named = set(removable.named_texts(journal, house.pipeline.name, window.number))
    named |= {filter_path(text) for text in named}
    lie_here = [file for file in _files(house, window) if not _is_kept(file.path)]
    whole = {house.storage.uri(file.path): file for file in [*lie_here, *_outside(house, window, named)]}
    return [file for uri, file in whole.items() if not {uri, file.path} & named]


def _is_kept(path: str) -> bool:
    """Return whether a file of a window is of its archive, which goes by itself, or says that this is gone."""
    return path.endswith(REMOVED) or (_ARCHIVE.match(path) is not None and UNFINISHED.match(path) is None)


def _outside(house: House, window: RemovableWindow, named: Collection[str]) -> Iterator[StoredFile]:
    """Yield the files of a window's runs of the key index, and those that would have been its anchors."""
    of_index = f"/window={window.number}/"
    for file in house.outside_windows:
        of_attempt = UNFINISHED.match(file.path)
        anchor = "" if of_attempt is None else house.storage.uri(of_attempt["whole"])
        if of_index in file.path or anchor in named:
            yield file


def _old(house: House, files: Sequence[StoredFile]) -> list[StoredFile]:
    """Return the files that were written long ago: one that was written since may be of an attempt at work, which names
    it at its end."""
    oldest = datetime.now(UTC) - dict(house.pipeline.keep)[Kept.ATTEMPTS]
    return [file for file in files if file.modified_at is not None and file.modified_at < oldest]
