"""Test that the model of the random histories notices each kind of wrong answer: none of them may pass unseen."""

from collections.abc import Callable

import pytest

from tests.histories.check import differences
from tests.histories.draw import KINDS, default_kinds, draw
from tests.histories.drawn import shrunk
from tests.histories.events import Event, History, Insert, Item, Load, Send, Step, Stray
from tests.histories.right import LEDGER, STORE, Scope, right_answers
from tests.histories.said import Repair, Said
from tests.histories.truth import Row, Truth

pytestmark = pytest.mark.unit

HISTORY = History(
    seed=0,
    partitions=1,
    has_group=False,
    is_repairing=True,
    store_missing="upsert",
    store_mismatched="report",
    asks=False,
    answer="none",
)
KEYS = ("K0", "K1", "K2")


def item(key: str, cents: int = 100) -> Item:
    return Item(key, cents, 0, 0)


def whole_truth() -> Truth:
    truth = Truth(1)
    truth.ledger += [item(key) for key in KEYS]
    truth.append(truth.ledger)
    truth.load(Load(0))
    return truth


def said(truth: Truth, *, state: str = "certified", reason: str | None = None) -> Said:
    no_keys: frozenset[str] = frozenset()
    scope = Scope(
        number=0,
        ranges={0: (0, truth.stable(0))},
        rows=frozenset(row.key for row in truth.ledger),
        handed={LEDGER: no_keys, STORE: no_keys},
        has_group=False,
        fresh=frozenset(row.key for row in truth.store),
    )
    return Said(scope=scope, before=None, opened=truth, moments=[truth, truth], state=state, reason=reason)


def test_a_certificate_over_whole_keys_is_right() -> None:
    assert differences(HISTORY, said(whole_truth())) == []


@pytest.mark.parametrize(
    ("harm", "verdict", "hop"),
    [
        (lambda truth: truth.store.pop(), "missing", STORE),
        (lambda truth: truth.store.append(Row("K1", 100, 0)), "duplicate", STORE),
        (lambda truth: truth.store.__setitem__(1, Row("K1", 999, 0)), "mismatched", STORE),
        (lambda truth: truth.store.append(Row("S9", 1, 0)), "unexpected", STORE),
        (lambda truth: truth.ledger.append(item("K9")), "missing", LEDGER),
        (lambda truth: truth.ledger.__setitem__(1, item("K1", 999)), "mismatched", LEDGER),
        (lambda truth: truth.ledger.pop(), "unexpected", LEDGER),
    ],
)
def test_a_certificate_over_a_harmed_key_is_wrong_and_so_is_silence(
    harm: Callable[[Truth], object], verdict: str, hop: str
) -> None:
    truth = whole_truth()
    harm(truth)

    texts = differences(HISTORY, said(truth))

    assert any(f"{hop} hop" in text and f"right is {verdict}" in text for text in texts)
    assert any("certified over" in text for text in texts)


def test_a_finding_about_a_whole_key_is_wrong() -> None:
    answer = said(whole_truth(), state="gaps", reason="orders→warehouse: 1 key missing, 0 allowed")
    answer.found = {(STORE, "K1"): ("missing", "lost_after_topic")}
    wrong = differences(HISTORY, answer)
    assert wrong[0].startswith("window 1 (gaps): store hop, K1: said missing (lost_after_topic), right is matched.")
    assert (
        wrong[1]
        == "window 1 (gaps): nothing is wrong, and it is not certified: orders→warehouse: 1 key missing, 0 allowed"
    )

    answer = said(whole_truth(), state="gaps", reason="something is odd")
    assert "window 1 (gaps): the runbook has no way out for its reason: something is odd" in differences(
        HISTORY, answer
    )


def test_a_window_without_a_reason_or_without_an_end_is_wrong() -> None:
    assert "window 1 (not_known): there is no reason" in differences(HISTORY, said(whole_truth(), state="not_known"))
    reports = differences(HISTORY, said(whole_truth(), state="error", reason="it broke"))
    assert "window 1 (error): the window came to no end: it broke" in reports


def test_a_row_is_judged_in_the_first_window_that_reads_it_whatever_its_clock_says() -> None:
    truth = whole_truth()
    truth.store += [Row("S7", 1, 1), Row("S8", 1, -1)]
    first = said(truth)
    first.take_rows(truth)
    second = said(truth)
    second.before, second.scope.number = first, 1
    second.take_rows(truth)

    answers = [right_answers([truth], answer.scope) for answer in (first, second)]

    assert [(answer[STORE, "S7"], answer[STORE, "S8"]) for answer in answers] == [
        ({None}, {"unexpected"}),
        ({"unexpected"}, {None}),
    ]


def test_a_row_that_another_system_changed_may_be_judged_again() -> None:
    truth = whole_truth()
    truth.ledger.append(item("K1", 999))
    answer = said(truth)
    answer.scope.number, answer.scope.rows, answer.scope.fresh = 1, frozenset(), frozenset()
    answer.before = said(truth)
    answer.scope.ranges = {0: (3, 3)}
    assert right_answers([truth], answer.scope)[LEDGER, "K1"] == {None}
    assert differences(HISTORY, answer) == []
    answer.scope.touched = frozenset({(LEDGER, "K1")})
    assert right_answers([truth], answer.scope)[LEDGER, "K1"] == {None, "conflict"}
    assert right_answers([truth], answer.scope)[STORE, "K1"] == {None}
    assert differences(HISTORY, answer) == []


def test_wrong_clocks_change_nothing_else_of_a_history() -> None:
    with_clocks, without = draw(7), draw(7, default_kinds() - {"clocks"})
    assert [type(event) for event in with_clocks.events] == [type(event) for event in without.events]
    assert [_keys(event) for event in with_clocks.events] == [_keys(event) for event in without.events]
    sent = [event.minutes for seed in range(20) for event in draw(seed).events if isinstance(event, Send)]
    assert min(sent) < -(10**6) and max(sent) > 10**6 and 0 in sent


def _keys(event: Event) -> tuple[str, ...]:
    items = [event.item] if isinstance(event, Insert | Stray) else getattr(event, "items", ())
    return tuple(sent.key for sent in items)


def test_a_repair_of_what_was_whole_is_wrong_whatever_it_did() -> None:
    before = whole_truth()
    again, fewer, more = before.copy(), before.copy(), before.copy()
    again.append([item("K1")])
    fewer.store = [row for row in fewer.store if row.key != "K1"]
    more.store.append(Row("K1", 100, None))
    for after, text in ((again, "was sent"), (fewer, "was whole in the store"), (more, "has more rows than before")):
        answer = said(before)
        answer.repairs.append(Repair(before=before, after=after))
        assert any(text in difference for difference in differences(HISTORY, answer))


def test_a_repair_that_keeps_the_wrong_row_is_wrong() -> None:
    before = whole_truth()
    before.store.append(Row("K1", 999, 0))
    after = before.copy()
    after.store.remove(Row("K1", 100, 0))
    answer = said(before, state="gaps", reason="1 duplicate")
    answer.found = {(STORE, "K1"): ("duplicate", "written_before_committed")}
    answer.repairs.append(Repair(before=before, after=after))
    assert any("K1 has no right row any more" in difference for difference in differences(HISTORY, answer))


def test_a_change_that_no_plan_names_is_wrong() -> None:
    answer = said(whole_truth())
    answer.unnamed = ("K1 in public.outbox was written, and no plan names it",)
    assert differences(HISTORY, answer) == [
        "window 1 (certified): K1 in public.outbox was written, and no plan names it"
    ]


def test_a_window_that_leaves_offsets_out_or_reads_what_is_not_stable_is_wrong() -> None:
    truth = whole_truth()
    for ranges, text in (({0: (1, 3)}, "begins at 1"), ({0: (0, 4)}, "ends at 4; 3 is stable")):
        answer = said(truth)
        answer.scope.ranges = ranges
        assert any(text in difference for difference in differences(HISTORY, answer))


def test_a_seed_draws_the_same_history_and_every_kind_is_drawn_by_some() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)
    drawn = {type(event).__name__ for seed in range(60) for event in draw(seed, frozenset(KINDS)).events}
    sent = {"Insert", "Send", "Begin", "End", "Load", "Stray"}
    assert drawn == {*sent, "Erase", "Fulfil", "Pass", "Retain", "Step"}
    assert {type(event).__name__ for event in draw(1, frozenset()).events} == {"Insert", "Send", "Load", "Step"}
    assert default_kinds() <= KINDS.keys()


def test_a_failing_history_is_shrunk_to_what_it_needs() -> None:
    stray = Stray(item("S9"))
    events = [Insert(item("K0")), Send((item("K0"),)), stray, Load(0), Step(0, "open"), Insert(item("K1"))]
    history = History(**{**vars(HISTORY), "events": tuple(events)})
    assert shrunk(history, lambda shorter: stray in shorter.events, Step).events == (stray, Step(0, "open"))
