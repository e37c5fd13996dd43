"""Does items together where it can, and one by one where it must: what one row cannot do is one refusal, not a failure.

What is done with them is the caller's: `apply` writes, `dry_run` only judges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import psycopg2
from psycopg2 import errors as pg_errors
from psycopg2.extensions import cursor as PgCursor  # noqa: N812 - it is a class

from makewhole.model.errors import RefusedError
from makewhole.postgres.connect import describe
from makewhole.postgres.write.array_parameter import NotTogether
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.quarantine import QuarantineRows
from makewhole.postgres.write.restore import RestoreRow
from makewhole.postgres.write.upsert_row import UpsertRow

RowItem = UpsertRow | QuarantineRows | RestoreRow

_FEW = 8
_MANY_BYTES = 8 << 20
# Classes of SQLSTATE that are no row's fault: fewer rows would fare no better. But of the statement that took too long
# (57014) and the one that took too much memory (53200), half may do.
_OF_THE_SERVER = ("08", "25", "40", "53", "55", "57", "58", "XX")
_OF_THE_SIZE = ("53200", "57014")


@dataclass(frozen=True, kw_only=True)
class Way:
    """What is done with items: with many of one kind at once (the refusals by action number), or with one (its reason).

    Both may raise RefusedError, and `many` NotTogether; what they wrote is taken back then.
    """

    many: Callable[[OpenChunk, Sequence[RowItem]], Mapping[int, str]]
    one: Callable[[OpenChunk, RowItem], str | None]


def divided(chunk: OpenChunk, items: Sequence[RowItem], way: Way) -> dict[int, str]:
    """The refusals, by action number. Neighbours of one kind are done together."""
    refused: dict[int, str] = {}
    for _, alike in groupby(items, key=type):
        refused |= _divide(chunk, list(alike), way)
    return refused


def _divide(chunk: OpenChunk, items: Sequence[RowItem], way: Way) -> dict[int, str]:
    """All at once, or else each half by itself: one bad row makes the few around it slow, not the chunk.

    In order all the same: what is done one by one comes after everything before it is done.
    """
    if len(items) > _FEW:
        refused = _together(chunk, items, way) if sum(item.size_bytes for item in items) <= _MANY_BYTES else None
        if refused is not None:
            return dict(refused)
        half = len(items) // 2
        return {**_divide(chunk, items[:half], way), **_divide(chunk, items[half:], way)}
    reasons = {item.seq: _alone(chunk, item, way) for item in items}
    return {seq: reason for seq, reason in reasons.items() if reason is not None}


def _together(chunk: OpenChunk, items: Sequence[RowItem], way: Way) -> Mapping[int, str] | None:
    """The refusals; None when together they cannot be done, for whatever reason, and nothing is."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint attempt")
        try:
            refused = way.many(chunk, items)
        except (NotTogether, RefusedError):
            refused = None
        except psycopg2.Error as error:
            if chunk.session.closed or not _is_of_the_rows(error):
                raise
            refused = None
        _end_savepoint(cursor, is_kept=refused is not None)
    return refused


def _alone(chunk: OpenChunk, item: RowItem, way: Way) -> str | None:
    """Run one item in a savepoint. What the data cannot do is a refusal; what the server cannot do is raised."""
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint attempt")
        try:
            reason = way.one(chunk, item)
        except (psycopg2.DataError, psycopg2.IntegrityError, pg_errors.RaiseException) as error:
            reason = f"unfit: the table does not take it: {describe(error)}"
        except RefusedError as error:
            reason = str(error)
        _end_savepoint(cursor, is_kept=reason is None)
    return reason


def _end_savepoint(cursor: PgCursor, *, is_kept: bool) -> None:
    cursor.execute(("" if is_kept else "rollback to savepoint attempt; ") + "release savepoint attempt")


def _is_of_the_rows(error: psycopg2.Error) -> bool:
    code = error.pgcode or ""
    return bool(code) and (code in _OF_THE_SIZE or not code.startswith(_OF_THE_SERVER))
