"""Test that the model of routes notices what makewhole could say or do wrongly."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.histories.routes.check import differences
from tests.histories.routes.column_types import COLUMNS, KEYS
from tests.histories.routes.draw import KINDS, draw
from tests.histories.routes.events import History, Link, Shape
from tests.histories.routes.held import Copy, Held, Seen, Values, plain

pytestmark = pytest.mark.unit

STORE: Link = ("orders", "warehouse")
LEDGER: Link = ("outbox", "orders")
A, B = (0,), (1,)


def held(shape: Shape = "two_stores", **values: list[Values]) -> Held:
    """Return what places hold of the event 1."""
    history = History(
        seed=1,
        shape=shape,
        key="text",
        columns=("text",),
        are_texts=False,
        has_groups=False,
        redelivers=True,
        is_repairing=True,
    )
    points = ("outbox", "shelf", "orders", "mirror", "warehouse", "archive")
    return Held(
        history, {point: [Copy(1, value, at) for at, value in enumerate(values.get(point, []))] for point in points}
    )


WHOLE = held(outbox=[A], orders=[A], warehouse=[A], archive=[A])


def seen(*moments: Held, state: str = "certified", **more: object) -> Seen:
    window = Seen(0, frozenset([1]), moments=list(moments), state=state, reason="1 key missing, 0 allowed")
    return replace(window, **more)  # type: ignore[arg-type]


def wrong(window: Seen) -> str:
    return "\n".join(differences(window))


def test_what_is_right_is_right() -> None:
    assert wrong(seen(WHOLE, WHOLE)) == ""
    lost = held(outbox=[A], orders=[A], archive=[A])
    assert wrong(seen(lost, state="gaps", found={(STORE, 1): ("missing", "lost_after_topic")})) == ""


@pytest.mark.parametrize(
    ("moment", "link", "right"),
    [
        (held(outbox=[A], orders=[A], archive=[A]), STORE, "missing"),
        (held(outbox=[A]), LEDGER, "missing"),
        (held(outbox=[A], orders=[A], warehouse=[B], archive=[A]), STORE, "mismatched"),
        (held(outbox=[A], orders=[A], warehouse=[A, A], archive=[A]), STORE, "duplicate"),
        (held(warehouse=[A]), STORE, "unexpected"),
        (held("two_ledgers", outbox=[A], shelf=[B], orders=[A], warehouse=[A]), LEDGER, "conflict"),
        (held("two_topics", orders=[A], mirror=[B], warehouse=[A]), STORE, "conflict"),
        (held("two_names", orders=[A], mirror=[B], warehouse=[A]), ("mirror", "annex"), "conflict"),
    ],
)
def test_silence_and_a_certificate_over_what_is_wrong_are_wrong(moment: Held, link: Link, right: str) -> None:
    said = wrong(seen(moment, moment))
    assert f"{'→'.join(link)}, 1: said None (None), right is {right}" in said
    assert f"certified over 1 on {'→'.join(link)}" in said


def test_what_is_twice_in_a_log_is_whole_where_the_stores_have_it_once() -> None:
    verdicts = {("orders", "mirror"): ("duplicate", "application_resend")}
    contained = held("two_hops", outbox=[A], orders=[A], mirror=[A, A], warehouse=[A])
    window = seen(contained, contained, found={(link, 1): said for link, said in verdicts.items()})
    assert wrong(window) == ""
    harmful = held("two_hops", outbox=[A], orders=[A], mirror=[A, A], warehouse=[A, A])
    assert "certified over 1 on orders→mirror" in wrong(seen(harmful, harmful))


def test_what_another_source_has_is_not_unexpected() -> None:
    other = held("two_names", mirror=[A], warehouse=[A])
    assert wrong(seen(other, other)) == ""
    said = wrong(seen(other, state="gaps", found={(STORE, 1): ("unexpected", "not_in_source")}))
    assert "said unexpected (not_in_source), right is None" in said


def test_an_offset_that_its_log_does_not_have_says_nothing() -> None:
    lost = held(outbox=[A], orders=[A], archive=[A])
    verdicts = {(STORE, 1): ("pending", "not_yet_consumed")}
    unreached = frozenset([STORE])
    assert wrong(seen(lost, state="not_known", found=verdicts, unreached=unreached)) == ""
    said = seen(lost, state="gaps", found={(STORE, 1): ("missing", "committed_before_written")}, unreached=unreached)
    assert "said missing (committed_before_written), right is pending or undecidable" in wrong(said)
    assert "certified over 1" in wrong(seen(lost, found=verdicts, unreached=unreached))


def test_a_false_alarm_is_wrong() -> None:
    said = wrong(seen(WHOLE, state="gaps"))
    assert "nothing is wrong, and it is not certified" in said


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (WHOLE, {"warehouse": []}, "was right, and was written to"),
        (WHOLE, {"outbox": [B]}, "the ledger was written to"),
        (WHOLE, {"orders": [A, A]}, "was sent, and was there"),
        (held(outbox=[A]), {"orders": [B]}, "was sent with what its sources do not say"),
        (held(outbox=[A]), {"orders": [A, A]}, "2 records of it were sent"),
        (held(outbox=[A]), {"orders": [A]}, ""),
        (held("two_ledgers", outbox=[A], shelf=[B]), {"orders": [A]}, "do not agree on"),
        (held(outbox=[A], orders=[B]), {"warehouse": [B]}, "although they do not agree"),
        (held(outbox=[A], orders=[A]), {"warehouse": [A]}, ""),
        (held("two_hops", outbox=[A], orders=[A]), {"orders": [A, A]}, ""),
        (held("two_hops", outbox=[A], orders=[A], mirror=[A]), {"orders": [A, A]}, "was sent, and was there"),
        (held("two_hops", outbox=[B], orders=[A]), {"orders": [A, A]}, "do not agree on"),
        (held("two_names", orders=[A], mirror=[B]), {"warehouse": [B]}, "although they do not agree"),
        (held(outbox=[A], orders=[A], warehouse=[A, B]), {"warehouse": [B]}, "lost its right row"),
        (held(outbox=[A], orders=[A], warehouse=[A, B]), {"warehouse": [A]}, ""),
        (held(outbox=[A], orders=[A], warehouse=[B, B]), {"warehouse": []}, "has no row any more"),
        (held(warehouse=[A]), {"warehouse": []}, ""),
    ],
)
def test_a_repair_writes_what_all_sources_say_alone(
    before: Held, after: dict[str, list[Values]], complaint: str
) -> None:
    copies = {point: [Copy(1, content, at) for at, content in enumerate(values)] for point, values in after.items()}
    done = Held(before.history, {**before.copies, **copies})
    said = [line for line in wrong(seen(before, done, before=before, after=done)).split("\n") if "1 at " in line]
    assert (complaint in "\n".join(said)) if complaint else said == []


def test_values_are_plain_whatever_their_form() -> None:
    assert plain(Decimal("19.00")) == plain(19) != plain("19")
    assert plain({"b": [Decimal("1.50")], "a": True}) == plain(
        json.loads('{"a": true, "b": [1.5]}', parse_float=Decimal)
    )
    assert plain(Decimal("1E+2")) == plain(100)


def test_every_kind_is_drawn() -> None:
    histories = [draw(seed, frozenset(KINDS)) for seed in range(120)]
    drawn = {type(event).__name__ for history in histories for event in history.events}
    assert drawn == {"Write", "Carry", "Fulfil", "Restore", "Window"}
    assert len(Counter(history.shape for history in histories)) == 7
    assert {name for history in histories for name in history.columns} == set(COLUMNS)
    assert {history.key for history in histories} == set(KEYS)
    assert draw(7, frozenset(KINDS)) == histories[7] != histories[8]
