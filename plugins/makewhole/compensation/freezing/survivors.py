"""Choose the row of a key that stays: the first that agrees with the source, among the rows that were judged."""

from collections.abc import Sequence

from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import RefusalCode
from makewhole.model.verdict import Finding
from makewhole.signing.mask import Mask
from makewhole.tables.rows import ValuedRow, Values, differing_columns


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
        raise ActionRefusedError.of(
            RefusalCode.STALE, "the rows of this key changed since it was judged; run the window again"
        )


def survivor_first(rows: Sequence[ValuedRow], values: Values, mask: Mask | None = None) -> list[ValuedRow] | None:
    """Return the rows with the survivor first: the first row, in their order, that has the source's values, which are
    masked by `mask`.

    None: no row agrees with the source.
    """
    texts = (row.values if mask is None else mask.values(row.values) for row in rows)
    agreeing = next((row for row, held in zip(rows, texts, strict=True) if not differing_columns(held, values)), None)
    return None if agreeing is None else [agreeing, *(row for row in rows if row is not agreeing)]
