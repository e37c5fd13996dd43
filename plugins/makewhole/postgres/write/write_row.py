"""Write one row and keep its effect: the before-image, and the row as it is after triggers and defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.table import match_key
from makewhole.postgres.write.chunk import TableChunk
from makewhole.tables.effects import EffectKind
from makewhole.tables.guards import OTHER_KEY
from makewhole.tables.items import UpsertRow, not_as_expected
from makewhole.tables.keys import key_components

_WRITTEN = (
    "t.tableoid::bigint as table_oid, t.ctid::text as ctid, {} as place, (t.*)::text as image, {} as key, {} as texts"
)

NOT_TAKEN = Refusal(RefusalCode.STALE, "the table did not take the row (a trigger or a policy stopped it)")
OTHER_ROW = Refusal(
    RefusalCode.UNFIT,
    "the table makes another row of it than there was (a trigger or a generated column changes it); "
    "restore this one by hand",
)


@dataclass(frozen=True, kw_only=True)
class RowWrite:
    """The write of a row: its action, its business key, and the image of the row that it replaces.

    `image` is what the row must become, where that is known beforehand; else the row must have its own key, and hold
    what `item` means.
    """

    seq: int
    key: str
    before: str | None = None
    image: str | None = None
    item: UpsertRow | None = None

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Compared columns that the row is held to."""
        return self.item.compared if self.item else ()


def write_row(
    chunk: TableChunk, write: RowWrite, query: str, parameters: Mapping[str, Any], **parts: sql.Composable
) -> None:
    """Run an insert or update that returns `{written}`, and keep its effect.

    Raises:
        RefusedError: nothing was written, or another row than was asked for; the caller undoes it.
    """
    written = sql.SQL(_WRITTEN).format(chunk.table.place, chunk.key_texts, chunk.compared_texts(write.compared))
    row = _only(chunk.run(query, parameters, written=written, **parts))
    if write.image is None and tuple(row.key) != key_components(write.key, chunk.point.key):
        raise ActionRefusedError(OTHER_KEY)
    if chunk.has_triggers_after:
        row = _after_triggers(chunk, write, row)
    if write.image is not None and row.image != write.image:
        raise ActionRefusedError(OTHER_ROW)
    if write.item is not None and (differing := write.item.differing(row.texts)):
        raise ActionRefusedError(not_as_expected(differing))
    kind = EffectKind.INSERTED if write.before is None else EffectKind.UPDATED
    known = {"seq": write.seq, "kind": kind.value, "before": write.before}
    chunk.run("insert_effect", {**known, "place": row.place, "after": row.image})


def _after_triggers(chunk: TableChunk, write: RowWrite, row: Any) -> Any:
    """Return place, image and compared texts of a row that a trigger may have written again, and so moved."""
    texts = chunk.compared_texts(write.compared)
    rows = chunk.run("row_at", {"table_oid": row.table_oid, "ctid": row.ctid}, texts=texts)
    if not rows:
        match, parameters = match_key(chunk.table, chunk.point, write.key, is_exact=False)
        rows = chunk.run("row_of_key", parameters, match=match, texts=texts)
    return _only(rows)


def _only(rows: Sequence[Any]) -> Any:
    if len(rows) != 1:
        raise ActionRefusedError(NOT_TAKEN)
    return rows[0]
