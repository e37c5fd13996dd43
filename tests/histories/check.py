"""Hold what makewhole said of a window to what was true: each difference is a sentence."""

from collections import Counter
from collections.abc import Iterator

from tests.histories.events import History
from tests.histories.reasons import is_known
from tests.histories.right import (
    DUPLICATE,
    ERASED,
    LEDGER,
    MATCHED,
    PENDING,
    STORE,
    UNDECIDABLE,
    UNEXPECTED,
    is_ahead,
    is_whole,
    keys_of,
    right_answers,
)
from tests.histories.said import Repair, Said
from tests.histories.truth import Copy, Row, Truth


def differences(history: History, said: Said) -> list[str]:
    """Return everything that makewhole said or did of a window and that was not right."""
    name = f"window {said.scope.number + 1} ({said.state})"
    wrong = [
        *_of_ranges(said),
        *_of_verdicts(said),
        *_of_certificate(said),
        *_of_false_alarms(said),
        *(difference for repair in said.repairs for difference in _of_repair(said, repair)),
        *said.unnamed,
    ]
    if not history.is_repairing and any(_written(repair) for repair in said.repairs):
        wrong.append("the pipeline only reports, and something was written")
    if history.asks and history.answer != "approved" and any(_written(repair) for repair in said.repairs):
        wrong.append("the plan was not approved, and something was written")
    return [f"{name}: {difference}" for difference in wrong]


def _of_ranges(said: Said) -> Iterator[str]:
    """Windows tile, and end at what is stable at most."""
    for partition, (lo, hi) in said.scope.ranges.items():
        start = said.before.scope.ranges[partition][1] if said.before else said.opened.starts[partition]
        if lo != start:
            yield f"partition {partition} begins at {lo}, and the window before ended at {start}"
        if not lo <= hi <= said.opened.stable(partition):
            yield f"partition {partition} ends at {hi}; {said.opened.stable(partition)} is stable"


def _of_verdicts(said: Said) -> Iterator[str]:
    """Every key has one of its right verdicts; what is not in the findings is matched, or not judged here."""
    right = right_answers(_judging(said), said.scope)
    for (hop, key), answers in sorted(right.items()):
        verdict, cause = said.found.get((hop, key), (None, None))
        given = verdict if verdict is not None else (MATCHED if MATCHED in answers else None)
        if given not in answers:
            wanted = " or ".join(sorted(str(answer) for answer in answers))
            yield f"{hop} hop, {key}: said {given} ({cause}), right is {wanted}. {_shown(_judging(said)[-1], key)}"
    for hop, key in sorted(set(said.found) - set(right)):
        yield f"{hop} hop, {key}: said {said.found[hop, key]}, and nothing ever had this key"


def _judging(said: Said) -> list[Truth]:
    """Return what was true while the window was judged: when the snapshots were taken, and at the look-ups."""
    return said.moments[:2]


def _of_certificate(said: Said) -> Iterator[str]:
    """No certificate over a lost, doubled or changed key, an unread offset, or what could not be known."""
    if said.state != "certified":
        return
    if said.scope.has_gone and said.before is None:
        yield "certified, and part of its log was gone before it was read"
    for (hop, key), answers in sorted(right_answers(_judging(said), said.scope).items()):
        # What may be doubted or passed over in silence is not judged.
        is_judged = answers - {None, PENDING, *([UNDECIDABLE] if None in answers else [])}
        is_reported_elsewhere = (
            (hop == LEDGER and MATCHED in answers and not _has_copies_in(said, key))
            or (hop == STORE and None in answers and key in said.scope.reported)
            or (hop == STORE and answers >= {MATCHED, DUPLICATE})  # by the window of the second row's time
            or (None in answers and (hop, key) in said.scope.touched)  # by the window that read the row before
        )
        is_whole_once = any(is_whole(truth, hop, key) for truth in said.moments)
        if is_judged and PENDING not in answers and not is_whole_once and not is_reported_elsewhere:
            if None in answers and is_judged == {UNEXPECTED}:
                continue
            is_gone = is_judged <= {UNEXPECTED, UNDECIDABLE} or (hop == STORE and key in said.scope.seen)
            if not is_gone or said.moments[-1].rows_of(key):
                yield f"certified over {key} on the {hop} hop. {_shown(said.moments[-1], key)}"


def _has_copies_in(said: Said, key: str) -> bool:
    """Return whether a window has records of a key; what is twice in others is theirs to say."""
    return any(said.scope.side(copy) == 0 for copy in said.moments[-1].committed_copies(key))


def _of_false_alarms(said: Said) -> Iterator[str]:
    """Where nothing is wrong the window is certified, and every other state has a reason."""
    if said.state == "certified":
        return
    if not said.reason:
        yield "there is no reason"
    elif said.state in ("gaps", "not_known") and not is_known(said.reason):
        yield f"the runbook has no way out for its reason: {said.reason}"
    if said.state in (None, "error", "open"):
        yield f"the window came to no end: {said.reason}"
    answers = right_answers(_judging(said), said.scope)
    wrong = [key for (_, key), right in answers.items() if right - {MATCHED, None, ERASED}]
    judged = {hop for (hop, _), right in answers.items() if MATCHED in right}
    if not wrong and judged == {LEDGER, STORE} and not said.scope.has_gone:
        yield f"nothing is wrong, and it is not certified: {said.reason}"


# Repairs


def _of_repair(said: Said, repair: Repair) -> Iterator[str]:
    """Nothing whole is touched, nothing right is taken away, nothing is written that the source does not say."""
    for key in sorted(keys_of(repair.before) | keys_of(repair.after)):
        sent, rows_before, rows_after = _sent(repair, key), repair.before.rows_of(key), repair.after.rows_of(key)
        shown = f"{_shown(repair.before, key)} → {_shown(repair.after, key)}"
        if key in said.scope.seen and not rows_before and (sent or rows_after):
            yield f"{key} had been in the store and was deleted, and was brought back. {shown}"
        if key in repair.before.named and not rows_before and (sent or rows_after):
            yield f"{key} was erased on purpose, and was brought back. {shown}"
        if (sent or len(rows_after) > len(rows_before)) and _is_still_to_come(said, repair.before, key):
            yield f"{key} was written, and its loader has not come to it yet. {shown}"
        if sent:
            yield from _of_sent(repair, key, sent, shown)
        if Counter(_values(rows_before)) != Counter(_values(rows_after)):
            yield from _of_rows(said, repair, key, shown)


def _of_sent(repair: Repair, key: str, sent: list[Copy], shown: str) -> Iterator[str]:
    if len(sent) > 1:
        yield f"{key} was sent {len(sent)} times. {shown}"
    cents = {item.cents for item in repair.before.ledger if item.key == key}
    of_log = {copy.item.cents for copy in repair.before.committed_copies(key)}
    if any(copy.item.cents not in cents | of_log for copy in sent):
        yield f"{key} was sent with another value. {shown}"
    if repair.before.committed_copies(key) and (repair.before.rows_of(key) or is_whole(repair.before, STORE, key)):
        yield f"{key} was sent, and was in the topic, and in the store or rightly not there. {shown}"


def _of_rows(said: Said, repair: Repair, key: str, shown: str) -> Iterator[str]:
    before, after = repair.before.rows_of(key), repair.after.rows_of(key)
    right = {copy.item.cents for copy in repair.before.taken_copies(key)}
    if is_whole(repair.before, STORE, key):
        yield f"{key} was whole in the store, and was written to. {shown}"
    if len(after) > max(len(before), 1):
        yield f"{key} has more rows than before. {shown}"
    if before and not after and said.found.get((STORE, key), ("", ""))[0] == DUPLICATE:
        yield f"every row of {key} was taken away. {shown}"
    had = any(row.cents in right for row in before)
    if after and not any(row.cents in right for row in after) and (had or len(after) >= len(before)):
        yield f"{key} has no right row any more, or was given a wrong one. {shown}"


def _is_still_to_come(said: Said, truth: Truth, key: str) -> bool:
    """Return whether a loader whose group is known has all records of a key in front of it."""
    copies = truth.committed_copies(key)
    return said.scope.has_group and bool(copies) and all(is_ahead(truth, copy) for copy in copies)


def _sent(repair: Repair, key: str) -> list[Copy]:
    return [copy for copy in repair.after.copies_of(key) if copy not in repair.before.copies]


def _written(repair: Repair) -> bool:
    is_sent = len(repair.after.copies) != len(repair.before.copies)
    return is_sent or Counter(_values(repair.after.store)) != Counter(_values(repair.before.store))


def _values(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row.key, row.cents) for row in rows]


def _shown(truth: Truth, key: str) -> str:
    """Return what the systems held of a key."""
    ledger = [f"{item.cents}@day{item.day}" for item in truth.ledger if item.key == key]
    log = [
        f"{copy.partition}:{copy.offset} {copy.item.cents} {copy.status}{' replay' if copy.is_replay else ''}"
        for copy in truth.copies_of(key)
    ]
    store = [f"{row.cents}@day{row.day}" for row in truth.rows_of(key)]
    return f"Ledger {ledger}, log {log}, store {store}"
