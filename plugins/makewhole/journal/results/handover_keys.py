"""Read and write the keys that a window hands over to the next."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.journal.statements import insert_many, scope, storable
from makewhole.model.window import Window
from makewhole.sql import PgConnection, load_queries, record, rows_in_pieces, single_value, statements_of

_run = statements_of("handover")
_KEYS_AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True)
class Handover:
    """A key that an earlier window left to the next one. `since`: the S1 of the window that first judged it pending."""

    hop: str
    key: str
    key_hash: str
    since: datetime


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The keys that a window hands over on a hop: their number, and since when the first of them waits."""

    keys: int
    since: datetime


def commit_handovers(journal: PgConnection, window: Window, keys: Iterable[Handover]) -> dict[str, int]:
    """Replace the keys that this revision hands over. Returns their number by hop, as the table has them afterwards."""
    _run(journal, "delete_handovers", **scope(window))
    revision = (window.pipeline, window.number, window.revision)
    rows = ((*revision, item.hop, storable(item.key), item.key_hash, item.since) for item in keys)
    insert_many(journal, "handover", "insert_handovers", rows)
    return dict(_run(journal, "count_handovers", **scope(window)))


def waiting_by_hop(journal: PgConnection, window: Window) -> dict[str, Waiting]:
    """Return what this revision hands over to the next window, by hop; hops that hand over nothing are not in it."""
    rows = _run(journal, "waiting_by_hop", **scope(window))
    return {row.hop: record(Waiting, row) for row in rows}


def handover_ids(journal: PgConnection, window: Window) -> Iterator[str]:
    """Yield `hop|key hash` of each key that this revision handed over, by code points, without holding all of them."""
    with journal.cursor("handover_ids") as cursor:
        cursor.execute(load_queries("handover")["handover_ids"], scope(window))
        for (identity,) in cursor:
            yield identity


def handovers(journal: PgConnection, pipeline: str, number: int, hop: str | None = None) -> Iterator[list[Any]]:
    """Yield the keys (rows with the fields of `Handover`) that the newest judged revision of window `number` handed
    over to the next, and those of older revisions that it could not read, so many at a time. `hop`: only those of one
    hop."""
    yield from rows_in_pieces(journal, "handover", "handovers", {"pipeline": pipeline, "number": number, "hop": hop})


def handed_on(journal: PgConnection, window: Window, number: int, hop: str, key_hashes: Sequence[str]) -> list[str]:
    """Return those of some keys (hashes in hex) that another window (`number`) of the pipeline handed over on a hop: by
    its newest certified revision, or without one by its newest judged one."""
    values = {"pipeline": window.pipeline, "number": number, "hop": hop}
    pieces = (list(key_hashes[at : at + _KEYS_AT_ONCE]) for at in range(0, len(key_hashes), _KEYS_AT_ONCE))
    return [row.key_hash for piece in pieces for row in _run(journal, "handed_on", **values, key_hashes=piece)]


def is_overtaken(journal: PgConnection, window: Window) -> bool:
    """Return whether the next window was compared without what this revision hands over, the last time that it was."""
    return bool(single_value(_run(journal, "is_overtaken", **scope(window))))
