"""Test what the model of the random histories calls right for a filter, erasures on purpose and waiting that ends."""

from dataclasses import replace

import pytest

from tests.histories.check import differences
from tests.histories.draw import default_kinds, draw
from tests.histories.events import Begin, Load, Pass, Step
from tests.histories.right import LEDGER, STORE, is_whole, right_answers
from tests.histories.said import Repair, Said
from tests.histories.truth import Row, Truth
from tests.unit.histories.test_check import HISTORY, item, said, whole_truth

pytestmark = pytest.mark.unit


def test_what_the_filter_keeps_out_is_unexpected_in_the_window_that_reads_its_row() -> None:
    truth = Truth(1, has_filter=True)
    truth.ledger += [replace(item("K0"), region="US"), replace(item("K1"), region="US"), item("K2")]
    truth.append(truth.ledger)
    truth.load(Load(0, mishaps=(("K1", "let_in"),)))
    answer = said(truth)
    assert truth.store == [Row("K1", 100, 0), Row("K2", 100, 0)]
    assert [right_answers([truth], answer.scope)[STORE, key] for key in ("K0", "K1", "K2")] == [
        {None},
        {"unexpected"},
        {"matched"},
    ]
    answer.scope.fresh = frozenset()
    assert right_answers([truth], answer.scope)[STORE, "K1"] == {None, "unexpected"}
    assert [is_whole(truth, STORE, key) for key in ("K0", "K1", "K2")] == [True, False, True]
    wrote = truth.copy()
    wrote.store.append(Row("K0", 100, None))
    answer.repairs.append(Repair(before=truth, after=wrote))
    assert any(
        "K0 was whole in the store, and was written to" in difference for difference in differences(HISTORY, answer)
    )


def test_a_key_that_is_named_as_erased_is_not_missing_and_may_not_come_back() -> None:
    truth = whole_truth()
    truth.ledger.append(item("K9"))
    truth.store = [row for row in truth.store if row.key != "K1"]
    truth.named |= {"K1", "K2", "K9"}
    answer = said(truth)
    right = right_answers([truth], answer.scope)
    assert (right[STORE, "K1"], right[STORE, "K2"], right[LEDGER, "K9"]) == ({"erased"}, {"matched"}, {"erased"})
    answer.found = {(STORE, "K1"): ("erased", "erased_on_purpose"), (LEDGER, "K9"): ("erased", "erased_on_purpose")}
    assert differences(HISTORY, answer) == []
    again = truth.copy()
    again.store.append(Row("K1", 100, 0))
    again.append([item("K9")])
    answer.repairs.append(Repair(before=truth, after=again))
    reports = differences(HISTORY, answer)
    for key in ("K1", "K9"):
        assert any(f"{key} was erased on purpose, and was brought back" in difference for difference in reports)


def test_a_key_named_as_erased_may_be_undecidable_where_the_log_that_may_have_had_it_is_gone() -> None:
    truth = whole_truth()
    truth.ledger.append(item("K9"))
    truth.named.add("K9")
    answer = said(truth)
    answer.scope.has_gone = True
    assert right_answers([truth], answer.scope)[LEDGER, "K9"] == {"erased", "undecidable"}


@pytest.mark.parametrize("is_overdue", [False, True])
def test_a_key_named_as_erased_that_cannot_be_read_yet_is_erased_when_its_waiting_has_ended(is_overdue: bool) -> None:
    """K8 is in the open transaction, K9 is committed behind it, twice."""
    truth = whole_truth()
    truth.ledger += [item("K8"), item("K9")]
    truth.append([item("K8")], "open")
    truth.append([item("K9"), item("K9")])
    answer = said(truth)
    answer.scope.overdue = {LEDGER: frozenset({"K8", "K9"} if is_overdue else ())}
    right = right_answers([truth], answer.scope)
    waits = "missing" if is_overdue else "pending"
    assert (right[LEDGER, "K8"], right[LEDGER, "K9"]) == ({waits}, {"matched", waits})
    truth.named |= {"K8", "K9"}
    right = right_answers([truth], answer.scope)
    waits = "erased" if is_overdue else "pending"
    assert (right[LEDGER, "K8"], right[LEDGER, "K9"]) == ({waits}, {"matched", waits})


def test_what_was_handed_over_before_days_passed_is_missing_and_is_not_sent_while_its_loader_may_come() -> None:
    truth = whole_truth()
    truth.store, truth.committed = [], {0: 1}
    first = said(truth)
    first.scope.has_group = True
    first.found = {(STORE, "K1"): ("pending", "not_yet_consumed")}
    later = truth.copy()
    assert (first.overdue(STORE, later.passed), first.overdue(STORE, 1)) == (frozenset(), frozenset({"K1"}))
    second = Said(scope=said(later).scope, before=first, opened=later, moments=[later, later])
    second.scope.has_group, second.scope.overdue = True, {STORE: first.overdue(STORE, 1)}
    right = right_answers([later], second.scope)
    assert [right[STORE, key] for key in ("K0", "K1", "K2")] == [{"missing"}, {"missing"}, {"pending"}]
    sent = later.copy()
    sent.append([item("K1")])
    second.repairs.append(Repair(before=later, after=sent))
    assert any(
        "K1 was written, and its loader has not come to it yet" in report for report in differences(HISTORY, second)
    )


def test_each_kind_is_drawn_and_leaves_the_records_of_a_seed_as_they_were() -> None:
    new = {"filter", "named", "waiting"}
    some = [draw(seed) for seed in range(40)]
    assert {(history.has_filter, history.names_erased) for history in some} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    assert any(Pass() in history.events for history in some)
    for seed in range(40):
        old, now = draw(seed, default_kinds() - new), draw(seed)
        assert [event for event in old.events if isinstance(event, Step)] == [
            event for event in now.events if isinstance(event, Step)
        ]
        begun = [
            [sent.key for event in of.events if isinstance(event, Begin) for sent in event.items] for of in (old, now)
        ]
        assert begun[0] == begun[1]


def test_what_an_earlier_window_said_is_not_said_again_and_may_be_certified_over() -> None:
    """Repeats of a row that came after its records, and a key that an open window still has."""
    truth = whole_truth()
    truth.append([item("K1")])
    truth.store.append(Row("K1", 100, 0))
    first = said(truth)
    second = Said(scope=replace(first.scope), before=None, opened=truth, moments=[truth, truth], state="certified")
    second.scope.ranges = {0: (4, 4)}
    second.scope.rows, second.scope.fresh = frozenset({"K1"}), frozenset({"K1"})
    right = right_answers([truth], second.scope)
    assert (right[LEDGER, "K1"], right[STORE, "K1"]) == ({"duplicate", "matched"}, {"duplicate"})
    assert any("certified over K1 on the store hop" in text for text in differences(HISTORY, second))
    second.scope.reported = frozenset({"K1"})
    assert right_answers([truth], second.scope)[STORE, "K1"] == {"duplicate", None}
    assert not [text for text in differences(HISTORY, second) if "K1" in text]


def test_rows_of_records_that_contradict_each_other_may_be_a_conflict() -> None:
    truth = whole_truth()
    truth.append([replace(item("K1"), cents=105)])
    truth.store.append(Row("K1", 105, 0))
    assert right_answers([truth], said(truth).scope)[STORE, "K1"] == {"duplicate", "conflict"}


def test_a_window_may_be_silent_of_records_that_were_lost_before_anybody_read_them() -> None:
    truth = Truth(1)
    truth.append([item("U0")])
    truth.store.append(Row("U0", 100, 0))
    truth.starts[0] = 1
    answer = said(truth)
    answer.scope.has_gone = True
    assert right_answers([truth], answer.scope)[LEDGER, "U0"] == {"unexpected", "undecidable", None}


def test_a_window_may_be_silent_of_a_row_that_it_does_not_read_and_whose_record_was_lost_unread() -> None:
    """By the clock of its producer the record was of the window after that of its row."""
    truth = whole_truth()
    truth.store[1] = Row("K1", 999, 0)
    truth.starts[0] = 3
    answer = said(truth, state="not_known", reason="partial: 3 offsets of orders/0 ([0, 3))")
    answer.scope.has_gone = True
    assert "K1" in answer.scope.rows
    assert right_answers([truth], answer.scope)[STORE, "K1"] == {"mismatched", "undecidable"}
    answer.scope.fresh = frozenset()
    assert right_answers([truth], answer.scope)[STORE, "K1"] == {"mismatched", "undecidable", None}
    answer.scope.handed = {LEDGER: frozenset(), STORE: frozenset({"K1"})}
    assert right_answers([truth], answer.scope)[STORE, "K1"] == {"mismatched", "undecidable"}


def test_a_record_that_differs_from_an_older_ledger_row_may_follow_one_that_was_lost_unread() -> None:
    truth = whole_truth()
    truth.append([replace(item("U1"), cents=105)])
    truth.ledger.append(item("U1"))
    answer = said(truth)
    answer.scope.rows -= {"U1"}
    assert right_answers([truth], answer.scope)[LEDGER, "U1"] == {None}
    answer.scope.has_gone = True
    assert right_answers([truth], answer.scope)[LEDGER, "U1"] == {None, "undecidable"}
