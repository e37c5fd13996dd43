"""Choose the row of a key that stays: the first that agrees with the source, among the rows that were judged. Hold the
rows of a key to what was judged."""

from collections.abc import Collection, Sequence

from makewhole.journal.statements import storable
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Finding
from makewhole.signing.mask import Mask
from makewhole.tables.rows import ValuedRow, Values, differing_columns

_CHANGED = Refusal(RefusalCode.STALE, "the rows of this key changed since it was judged; run the window again")


def require_rows_as_judged(rows: Sequence[ValuedRow], finding: Finding) -> None:
    """Check that the rows of a key are those that its finding names. The evidence names ten of them at most.

    Raises:
        RefusedError: a row came, went or was written again since then.
    """
    named = finding.evidence.get("target")
    if named is None:
        return
    judged, now = {copy["place"] for copy in named}, {row.place for row in rows}
    if not judged <= now or len(now) != finding.evidence["target_copies"]:
        raise ActionRefusedError(_CHANGED)


def require_values_as_judged(
    row: ValuedRow, written: Collection[str], finding: Finding, mask: Mask | None = None
) -> None:
    """Check that a row still differs from its source as its finding says, in values that are masked by `mask`: it holds
    what was judged, and no other column of `written`, the compared ones that are to be written, differs by now.
    Evidence that names no columns, or totals of several records, shows nothing of that.

    Raises:
        RefusedError: it was written again since then.
    """
    judged = finding.evidence.get("columns")
    if not judged or "group" in finding.evidence:
        return
    held = row.values if mask is None else mask.values(row.values)
    texts = {name: None if text is None else storable(text) for name, text in held.items()}
    changed = any(name in texts and texts[name] != sides["target"] for name, sides in judged.items())
    if changed or not judged.keys() >= set(written):
        raise ActionRefusedError(_CHANGED)


def survivor_first(rows: Sequence[ValuedRow], values: Values, mask: Mask | None = None) -> list[ValuedRow] | None:
    """Return the rows with the survivor first: the first row, in their order, that has the source's values, which are
    masked by `mask`.

    None: no row agrees with the source.
    """
    texts = (row.values if mask is None else mask.values(row.values) for row in rows)
    agreeing = next((row for row, held in zip(rows, texts, strict=True) if not differing_columns(held, values)), None)
    return None if agreeing is None else [agreeing, *(row for row in rows if row is not agreeing)]
