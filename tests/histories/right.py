"""Return which answers of a window are right, from what the systems held while it was judged; a set where several are.

Written from the words of the design, not from the code: a key is judged in the window of its source, a repeat in the
window of the repeat, and not known is right only where it could not be known.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.histories.truth import Copy, Truth

HopName = Literal["ledger", "store"]
Answer = str | None
"""A verdict; None: the window says nothing of the key."""

MATCHED, MISSING, DUPLICATE = "matched", "missing", "duplicate"
UNEXPECTED, MISMATCHED, PENDING, UNDECIDABLE = "unexpected", "mismatched", "pending", "undecidable"
CONFLICT, VANISHED, ERASED = "conflict", "vanished", "erased"
LEDGER: HopName = "ledger"
STORE: HopName = "store"


@dataclass
class Scope:
    """Hold what a window is to judge. `ranges`: `[lo, hi)` by partition; `rows`: the keys of its ledger rows; `handed`:
    the keys that the window before has left to it, by hop. `has_gone`: part of the log was gone before it was read.
    `late`: keys whose rows came after the window was opened. `seen`: keys that a certified window has seen in the
    store; `perhaps_seen`: and those that it has seen if it looked again at the right moment. `restored`: keys of which
    an earlier window wrote or changed a row in the store, which are looked at again. `fresh`: keys with rows in the
    store that are old enough and that no window before has read. `overdue`: keys that have been handed over for longer
    than any key may be pending, by hop. `reported`: keys of which an open older window says that something is wrong
    with them in the store. `touched`: keys of which another system changed a row since the window before, by hop: such
    a row may be read again, and its key judged again."""

    number: int
    ranges: Mapping[int, tuple[int, int]]
    rows: frozenset[str]
    handed: Mapping[HopName, frozenset[str]]
    has_group: bool
    has_gone: bool = False
    late: frozenset[str] = field(default=frozenset())
    seen: frozenset[str] = field(default=frozenset())
    perhaps_seen: frozenset[str] = field(default=frozenset())
    restored: frozenset[str] = field(default=frozenset())
    fresh: frozenset[str] = field(default=frozenset())
    overdue: Mapping[HopName, frozenset[str]] = field(default_factory=dict)
    reported: frozenset[str] = field(default=frozenset())
    touched: frozenset[tuple[HopName, str]] = field(default=frozenset())

    def waiting(self, hop: HopName, key: str) -> Answer:
        """Return what is said of a key that is in flight: waiting has an end."""
        return MISSING if key in self.overdue.get(hop, frozenset()) else PENDING

    def side(self, copy: Copy) -> int:
        """Return −1 for a record before the window, 0 for one in it, 1 for one behind it."""
        lo, hi = self.ranges[copy.partition]
        return -1 if copy.offset < lo else int(copy.offset >= hi)


def right_answers(moments: Collection[Truth], scope: Scope) -> dict[tuple[HopName, str], set[Answer]]:
    """Return the right answers for every key that exists anywhere, at any of the moments."""
    possible: dict[tuple[HopName, str], set[Answer]] = {}
    for truth in moments:
        for key in keys_of(truth):
            for hop, right in ((LEDGER, of_ledger_hop), (STORE, of_store_hop)):
                answers = _with_doubt(right(truth, scope, key), scope, is_gone=_is_gone(truth, key))
                for again in _reading(scope, hop, key):
                    answers |= _with_doubt(right(truth, again, key), scope, is_gone=_is_gone(truth, key))
                if scope.has_gone and _may_be_silent(truth, scope, hop, key):
                    answers.add(None)
                possible.setdefault((hop, key), set()).update(answers)
    return possible


def _reading(scope: Scope, hop: HopName, key: str) -> list[Scope]:
    """Return the same window as one that reads the rows of a key that another system changed: as rows that were there
    when it was opened, and as rows that came since."""
    if (hop, key) not in scope.touched:
        return []
    reading = replace(scope, rows=scope.rows | {key}, fresh=scope.fresh | {key})
    return [reading, replace(reading, late=scope.late | {key})]


def keys_of(truth: Truth) -> set[str]:
    """Return every key that is anywhere."""
    return {
        *(item.key for item in truth.ledger),
        *(copy.item.key for copy in truth.copies),
        *(row.key for row in truth.store),
    }


def _with_doubt(answers: set[Answer], scope: Scope, *, is_gone: bool) -> set[Answer]:
    """Add undecidable where a part of the log that was never read may have held the key, or did (`is_gone`). Of two
    copies one may be gone, and only one is seen."""
    if not scope.has_gone:
        return answers
    if is_gone and DUPLICATE in answers:
        return answers | {None, MATCHED, UNDECIDABLE}
    if is_gone and CONFLICT in answers:
        return answers | {MATCHED, UNDECIDABLE}
    if is_gone and answers == {None}:
        return {None, UNDECIDABLE}
    doubtful = answers & {MISSING, ERASED, UNEXPECTED, MISMATCHED, *([MATCHED] if is_gone else [])}
    return answers | {UNDECIDABLE} if doubtful else answers


def _is_gone(truth: Truth, key: str) -> bool:
    """Return whether the log has lost a record of a key."""
    return any(copy.offset < truth.starts[copy.partition] for copy in truth.committed_copies(key))


def _may_be_silent(truth: Truth, scope: Scope, hop: HopName, key: str) -> bool:
    """Return whether a window may say nothing of a key, since it cannot know of the records that the log has lost."""
    return _is_unheard_of(truth, scope, hop, key) or _came_again_unread(truth, scope, key)


def _is_unheard_of(truth: Truth, scope: Scope, hop: HopName, key: str) -> bool:
    """Return whether all that a window could know of a key on a hop is records that the log has lost. Rows of the store
    that a window before has read it does not read again, nor those of later days; a row of the ledger says nothing on
    the hop to the store."""
    named = scope.handed[hop] | (scope.rows if hop == LEDGER else scope.fresh)
    return key not in named and all(copy.offset < truth.starts[copy.partition] for copy in truth.committed_copies(key))


def _came_again_unread(truth: Truth, scope: Scope, key: str) -> bool:
    """Return whether the log has lost all that came of a key in this window, while an earlier one has judged it."""
    copies = truth.committed_copies(key)
    here = [copy for copy in copies if scope.side(copy) == 0]
    is_gone = all(copy.offset < truth.starts[copy.partition] for copy in here)
    is_judged = any(scope.side(copy) < 0 for copy in copies) and key not in scope.handed["store"]
    return bool(here) and is_gone and is_judged


def of_ledger_hop(truth: Truth, scope: Scope, key: str) -> set[Answer]:
    """Return the right answers on the hop from the ledger to the topic."""
    copies = truth.committed_copies(key)
    originals = counted_copies(copies)
    until_now = [copy for copy in originals if scope.side(copy) <= 0]
    in_slice = [copy for copy in until_now if scope.side(copy) == 0]
    cents = {item.cents for item in truth.ledger if item.key == key}
    if key not in scope.rows | scope.handed["ledger"]:
        if not in_slice:
            return {None}
        if not cents:
            return {UNEXPECTED}
        if len(until_now) > 1:
            return {DUPLICATE}
        # Of a record that differs from its row, the window of the row may have seen another one that is gone.
        return {None, UNDECIDABLE} if scope.has_gone and in_slice[0].item.cents not in cents else {None}
    if len(until_now) > 1:
        repeated: set[Answer] = {DUPLICATE, CONFLICT} if len(cents) > 1 else {DUPLICATE}
        # The row came later than its records: the window of these has said that they are several.
        return repeated if in_slice else repeated | {MATCHED}
    counted = until_now or originals or copies
    if counted:
        answers: set[Answer] = {MATCHED if copy.item.cents in cents else MISMATCHED for copy in counted}
        answers = {CONFLICT} if len(cents) > 1 else answers
        if key in scope.late and not until_now:  # a row of a moment ago may wait for a record behind the window
            answers |= {PENDING}
        # Behind an open transaction what is committed is not read either. Of what is gone it is not known that it was.
        is_gone = scope.has_gone and all(copy.offset < truth.starts[copy.partition] for copy in until_now)
        is_open = any(not truth.is_stable(copy) for copy in (originals if is_gone else counted))
        return answers | _unless_erased(truth, key, {scope.waiting(LEDGER, key)}) if is_open else answers
    is_open = any(copy.status == "open" for copy in truth.copies_of(key))
    waiting: set[Answer] = {scope.waiting(LEDGER, key)} if is_open or key in scope.late else {MISSING}
    return _unless_erased(truth, key, waiting)


def _unless_erased(truth: Truth, key: str, answers: set[Answer]) -> set[Answer]:
    """Return what is right of a key that is missing: where it was erased on purpose, it is not lost. Erasures are asked
    for what is missing alone: a key that may still come is pending."""
    lost = answers & {MISSING, VANISHED, UNDECIDABLE}
    return (answers - lost) | {ERASED} if lost and key in truth.named else answers


def of_store_hop(truth: Truth, scope: Scope, key: str) -> set[Answer]:
    """Return the right answers on the hop from the topic to the store."""
    rows, copies = truth.rows_of(key), truth.taken_copies(key)
    here = [copy for copy in copies if scope.side(copy) == 0]
    if here or key in scope.handed["store"]:
        return _of_loaded(truth, scope, key)
    if copies:
        return _of_other_windows(truth, scope, key)
    if not rows:
        return {None}
    # Kept out by the filter and loaded all the same: the window that reads the row says it; that of the record may.
    is_here = any(scope.side(copy) == 0 for copy in truth.committed_copies(key))
    return {UNEXPECTED} if key in scope.fresh else {None, *([UNEXPECTED] if is_here else [])}


def _of_other_windows(truth: Truth, scope: Scope, key: str) -> set[Answer]:
    """Return what is right of a key whose records all lie in other windows: its rows are held to them where the window
    reads them, in its own times or since it looks at the keys of earlier windows. What an older window has said of it
    may be left to that one."""
    rows, copies = truth.rows_of(key), truth.taken_copies(key)
    if key not in scope.fresh and all(scope.side(copy) > 0 for copy in copies):
        return {None}
    cents = {copy.item.cents for copy in copies}
    if len(rows) > 1:
        wrong: set[Answer] = {DUPLICATE}
    elif rows and rows[0].cents not in cents:
        wrong = {MISMATCHED if len(cents) == 1 else CONFLICT}
    else:
        return {None}
    is_surely_said = key not in scope.restored | scope.reported and all(truth.is_stable(copy) for copy in copies)
    return wrong if is_surely_said else {None, *wrong}


def _of_loaded(truth: Truth, scope: Scope, key: str) -> set[Answer]:
    rows, copies = truth.rows_of(key), truth.taken_copies(key)
    if len(rows) > 1:
        # What was loaded after the window's days is found there, at the latest.
        is_all_here = all(row.day is None or row.day <= scope.number for row in rows)
        is_contradicting = len({copy.item.cents for copy in copies if scope.side(copy) <= 0}) > 1
        return {DUPLICATE, *([] if is_all_here else [MATCHED]), *([CONFLICT] if is_contradicting else [])}
    if rows:
        judged = [copy for copy in copies if scope.side(copy) <= 0]
        if len({copy.item.cents for copy in judged if scope.side(copy) == 0}) > 1:
            return {CONFLICT}
        same = {copy.item.cents == rows[0].cents for copy in judged}
        answers: set[Answer] = {MATCHED if is_same else MISMATCHED for is_same in same}
        return answers | {CONFLICT} if len({copy.item.cents for copy in judged}) > 1 else answers
    ahead = {is_ahead(truth, copy) for copy in copies if scope.side(copy) <= 0} if scope.has_group else {False}
    if key in scope.seen:
        # In whatever words: it has been there, and is not lost. A record that came again may still be loaded.
        gone: set[Answer] = {None, MATCHED, VANISHED, UNDECIDABLE} | ({PENDING} if True in ahead else set())
        return _unless_erased(truth, key, gone)
    waiting: set[Answer] = {scope.waiting(STORE, key) if is_late else MISSING for is_late in ahead}
    return _unless_erased(truth, key, waiting | {VANISHED} if key in scope.perhaps_seen else waiting)


def is_ahead(truth: Truth, copy: Copy) -> bool:
    """Return whether the group has not reached a record yet."""
    return copy.offset >= truth.committed.get(copy.partition, 0)


def counted_copies(copies: Sequence[Copy]) -> list[Copy]:
    """Return the copies that count: a replay stands for the copies before it; one that comes after it is one more."""
    replays = [number for number, copy in enumerate(copies) if copy.is_replay]
    first = replays[0] if replays else len(copies)
    originals = [copy for copy in copies if not copy.is_replay]
    is_late = any(not copy.is_replay for copy in copies[first:])
    return [copies[first], *originals] if is_late and all(copy.is_replay for copy in copies[:first]) else originals


def is_whole(truth: Truth, hop: HopName, key: str) -> bool:
    """Return whether a key has come over a hop: nothing of it is lost, doubled or changed as far as can still be
    mended.

    What is twice in a log cannot be taken out of it; then the store says whether that did harm.
    """
    copies, rows = truth.committed_copies(key), truth.rows_of(key)
    taken = truth.taken_copies(key)
    # The store has what it is to have of a key that the filter keeps out, or that was erased on purpose: nothing.
    is_rightly_absent = not rows and (key in truth.named or (bool(copies) and not taken))
    if hop == "store":
        return is_rightly_absent or (len(rows) == 1 and rows[0].cents in {copy.item.cents for copy in taken})
    cents = {item.cents for item in truth.ledger if item.key == key}
    originals = counted_copies(copies) or copies[:1]
    if len(originals) > 1:
        return is_rightly_absent or (len(rows) == 1 and rows[0].cents in cents)
    return originals[0].item.cents in cents if originals else key in truth.named
