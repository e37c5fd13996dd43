"""Hold what makewhole said and did of a window of one pipeline to what was true: each difference is a sentence."""

from collections import Counter
from collections.abc import Iterator

from tests.histories.pipelines.held import HOPS, Copy, Held, Seen
from tests.histories.pipelines.orders import Values, in_columns
from tests.histories.shapes.changes import TYPES

_HANDED_OVER = {None, "pending"}


def differences(seen: Seen) -> list[str]:
    """Return everything that makewhole said or did in a window and that was not right."""
    wrong = [*_of_verdicts(seen), *_of_end(seen)]
    if seen.before is not None and seen.after is not None:
        wrong += _of_repair(seen, seen.before, seen.after)
    return [f"window of day {seen.day} ({seen.state}): {difference}" for difference in wrong]


def _of_verdicts(seen: Seen) -> Iterator[str]:
    held = seen.moments[0]
    for hop, right_of in HOPS.items():
        keys = {*held.all_keys(), *seen.found.get(hop, {})}
        for key in sorted(keys):
            verdict, cause = seen.found.get(hop, {}).get(key, (None, None))
            right = {right_of(held, key)}
            if held.is_perhaps_unsettled(hop, key):
                right.add("pending")
            if not seen.is_about(hop, key):
                # A window may look again at what others have judged. What was there before is not lost.
                right |= {None, *(["vanished"] if right & {"missing", "pending"} else [])}
            if verdict not in right:
                shown = f"right is {' or '.join(sorted(map(str, right)))}. {_shown(held, key)}"
                yield f"{hop} hop, {key}: said {verdict} ({cause}), {shown}"
            is_of_doubt = hop == "store" and held.is_in_doubt(key)
            if verdict is not None and seen.is_about(hop, key) and is_of_doubt != (cause == "in_doubt"):
                yield f"{hop} hop, {key}: said {verdict} because of {cause}. {_shown(held, key)}"


def _of_end(seen: Seen) -> Iterator[str]:
    first, last = seen.moments[0], seen.moments[-1]
    wrong, left = [], []
    for hop, right_of in HOPS.items():
        for key in first.all_keys():
            if seen.is_about(hop, key) and right_of(first, key) not in _HANDED_OVER and not last.is_harmless(key):
                wrong.append(key)
                is_unsettled = first.is_perhaps_unsettled(hop, key) and key in seen.pending(hop)
                if right_of(last, key) not in _HANDED_OVER and not is_unsettled:
                    left.append(f"{key} on the {hop} hop. {_shown(last, key)}")
    if seen.state == "certified":
        yield from (f"certified over {gap}" for gap in left)
        return
    if seen.state not in ("gaps", "not_known"):
        yield f"the window came to no end: {seen.reason}"
    if not seen.reason:
        yield "there is no reason"
    others = {key for verdicts in seen.found.values() for key in verdicts} - set(wrong)
    if not left and not others:
        yield f"nothing is wrong any more, and it is not certified: {seen.reason}"


# What it did


def _of_repair(seen: Seen, before: Held, after: Held) -> Iterator[str]:
    for key in sorted({*before.all_keys(), *after.all_keys()}):
        shown = f"{_shown(before, key)} → {_shown(after, key)}"
        yield from (f"{key} in the topic: {text}. {shown}" for text in _of_topic(before, after, key))
        yield from (f"{key} in the store: {text}. {shown}" for text in _of_rows(seen, before, after, key))


def _of_topic(before: Held, after: Held, key: str) -> Iterator[str]:
    old = {copy.at for copy in before.records}
    sent = [copy for copy in after.records if copy.key == key and copy.at not in old]
    is_produced = before.history.produces and before.of_ledger_hop(key) == "missing"
    is_sent_again = before.history.store == "topic" and before.of_store_hop(key) == "missing"
    if sent and not (before.history.is_repairing and (is_produced or is_sent_again)):
        yield "was sent, and no hop lacks it"
    if sent and is_produced and after.of_ledger_hop(key) is not None:
        yield "was sent otherwise than the ledger has it"
    if len(sent) > 1:
        yield f"was sent {len(sent)} times"
    if sent and is_sent_again and {copy.values for copy in sent} != {copy.values for copy in before.sent(key)}:
        yield "was sent again otherwise than it was"


def _of_rows(seen: Seen, before: Held, after: Held, key: str) -> Iterator[str]:
    history, wrong = before.history, before.of_store_hop(key)
    old, new = (Counter(copy.values for copy in held.rows_of(key)) for held in (before, after))
    can_mend = {"missing"} if history.store == "topic" else {"missing", "mismatched", "duplicate", "unexpected"}
    if not history.is_repairing or wrong not in can_mend or before.is_in_doubt(key):
        if old != new:
            yield f"was written to, and is {wrong or 'right'}"
        return
    if new == old:
        is_due = seen.is_about("store", key) and not before.is_disputed(key) and not before.has_no_survivor(key)
        if is_due and before.of_ledger_hop(key) != "duplicate":
            yield f"was {wrong}, and was not repaired"
        return
    if wrong in ("missing", "mismatched") and before.is_disputed(key):
        yield "was written, and its source is disputed"
    if new not in [Counter(mended) for mended in _mended(before, key)]:
        yield f"was {wrong}, and was repaired wrongly"


def _mended(before: Held, key: str) -> list[list[Values]]:
    """Return the rows that a repair may leave of a key that is wrong in the store."""
    rows = [copy.values for copy in before.rows_of(key)]
    sent = {copy.values for copy in before.sent(key) if copy.is_taken}
    if not sent:
        return [[]]
    if not rows:
        return [[values] for values in sent]
    right = [row for row in rows if _compared(before, row) in {_compared(before, two) for two in sent}]
    if len(rows) > 1:
        return [[row] for row in right or rows] + (
            [] if right else [[_merged(before, row, two)] for row in rows for two in sent]
        )
    return [[_merged(before, rows[0], values)] for values in sent]


def _compared(held: Held, values: Values) -> Values:
    return in_columns(values, held.history.store_columns)


def _merged(held: Held, row: Values, record: Values) -> Values:
    """Return a row with what is compared as its record has it, and the rest as it was."""
    columns = held.history.store_columns
    return tuple(new if name in columns else old for name, old, new in zip(TYPES, row, record, strict=True))


def _shown(held: Held, key: str) -> str:
    def written(copies: list[Copy]) -> str:
        return str(
            [f"day {copy.day} {copy.at or ''}{' replay' if copy.is_replay else ''} {_text(copy)}" for copy in copies]
        )

    ledger = [copy for copy in held.ledger if copy.key == key]
    records = [copy for copy in held.records if copy.key == key]
    rows = held.rows_of(key)
    doubts = f", in doubt by {sorted(held.doubts)}" if held.doubts else ""
    return f"Ledger {written(ledger)}, log {written(records)}, store {written(rows)}{doubts}"


def _text(copy: Copy) -> str:
    return "/".join(str(value) for value in copy.values) + ("" if copy.is_taken else " (not taken)")
