"""Select the copies of a key to take back: those beyond the survivor that were not taken back before.

What is not certain is refused: a copy that is taken back twice does as much harm as one that exists twice.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from makewhole.config.template import exact_json
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import Point, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.model.reversal import PastReversals, Repetition, ReversedCopy
from makewhole.model.verdict import Finding, Verdict
from makewhole.tables.rows import TableRow

_SHA256_DIGITS = 32


def extra_rows(finding: Finding) -> int:
    """Return the number of extra rows among those judged: all of an unexpected key, all but one of a duplicate."""
    return int(finding.evidence["target_copies"]) - _surviving_copies(finding)


def extra_records(finding: Finding, point: Point, past: PastReversals) -> list[Repetition]:
    """Return the window's records in a topic beyond the survivor that were not taken back before, by position.

    The survivor is the key's first record: one of an earlier window, or else the first by position.

    Raises:
        RefusedError: the evidence does not name every copy, or what was taken back is not certain.
    """
    before = _known_reversals(past, point, finding)
    done = {(copy.copy.get("partition"), copy.copy.get("offset")) for copy in before if copy.window == past.window}
    return [record for record in _repetitions(finding) if (record.partition, record.offset) not in done]


def _repetitions(finding: Finding) -> list[Repetition]:
    repeated = finding.evidence.get("repeated", {"here": [], "elsewhere": 0})
    places, elsewhere = repeated["here"], repeated["elsewhere"]
    if len(places) + elsewhere != finding.evidence["target_copies"]:
        raise ActionRefusedError.of(
            RefusalCode.NOT_KNOWN,
            f"{len(places) + elsewhere} of the key's {finding.evidence['target_copies']} records could be "
            "distinguished. The others name a plan that did not write them, or are too many; reverse by hand",
        )
    positions = [(number, *place.split(":")) for number, place in enumerate(places, start=elsewhere + 1)]
    records = [Repetition(number=at, partition=int(part), offset=int(offset)) for at, part, offset in positions]
    return records if elsewhere else records[1:]


def row_copy(row: TableRow, rows: Sequence[TableRow], point: TablePoint) -> dict[str, Any]:
    """Return what identifies a row among the rows of its key, for `ReversedCopy.copy`."""
    time, times = _time(row, point), Counter(_time(other, point) for other in rows)
    is_own_time = time is not None and times[time] == 1
    return _row_identity(row) | {"rows": len(rows)} | ({"time": time} if is_own_time else {})


def left_to_reverse(
    rows: Sequence[TableRow], finding: Finding, point: TablePoint, past: PastReversals
) -> list[tuple[int, TableRow]]:
    """Return the rows beyond the survivor that were not taken back before, each with its number among the rows, from 1.

    `rows` are all of the key, the survivor first. A row is recognised by its place and text, or by a time that no other
    row of the key has: a consumer may change what was taken back.

    Raises:
        RefusedError: there are not as many rows as were judged, or what was taken back is not certain.
    """
    if len(rows) != finding.evidence["target_copies"]:
        raise ActionRefusedError.of(
            RefusalCode.STALE,
            f"the key has {len(rows)} rows now and had {finding.evidence['target_copies']} when it was judged; "
            "run the window again",
        )
    left = list(enumerate(rows, start=1))[_surviving_copies(finding) :]
    before = _known_reversals(past, point, finding)
    gone = []
    for copy in before:
        again = next((item for item in left if _is_same_row(item[1], copy.copy, point)), None)
        if again is None:
            gone.append(copy)
        else:
            left.remove(again)
    if left and (gone or (before and len(rows) > before[-1].copy.get("rows", 0))):
        raise ActionRefusedError.of(
            RefusalCode.NOT_KNOWN,
            f"plan {before[-1].plan} took back a row of this key, and its rows changed since. Whether an "
            "extra row is that one, what its reversal wrote, or one more repetition cannot be determined; reverse "
            "by hand",
        )
    return left


def _known_reversals(past: PastReversals, point: Point, finding: Finding) -> Sequence[ReversedCopy]:
    """Return the copies of a key that were taken back in a table or topic.

    Raises:
        RefusedError: one was taken back in a place that is no point any more, or has no receipt.
    """
    elsewhere = past.in_former_places(finding.key_hash)
    if elsewhere:
        raise ActionRefusedError.of(
            RefusalCode.NOT_KNOWN,
            f"plan {elsewhere[0].plan} took back a copy of this key in {elsewhere[0].place}, which is no "
            "point of the pipeline any more; whether it is this one under another name cannot be determined. "
            "Reverse by hand",
        )
    copies = past.of(point.places, finding.key_hash)
    unproven = next((copy for copy in copies if not copy.is_done), None)
    if unproven is not None:
        raise ActionRefusedError.of(
            RefusalCode.NOT_KNOWN,
            f"plan {unproven.plan} was begun, and the journal has no receipt of its action {unproven.seq}, "
            "which takes back a copy of this key. Look for both numbers in the lineage headers of "
            f"{unproven.target}",
        )
    return copies


def _is_same_row(row: TableRow, copy: Mapping[str, Any], point: TablePoint) -> bool:
    identity = _row_identity(row)
    is_unchanged = identity == {name: copy.get(name) for name in identity}
    return is_unchanged or ("time" in copy and copy["time"] == _time(row, point))


def _row_identity(row: TableRow) -> dict[str, Any]:
    digest = hashlib.sha256(row.text.encode()).hexdigest()[:_SHA256_DIGITS]
    return {"table_oid": row.table_oid, "ctid": row.ctid, "sha256": digest}


def _time(row: TableRow, point: TablePoint) -> str | None:
    return None if point.time is None else exact_json.loads(row.text).get(point.column_place(point.time))


def _surviving_copies(finding: Finding) -> int:
    return 1 if finding.verdict is Verdict.DUPLICATE else 0
