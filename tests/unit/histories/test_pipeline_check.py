"""Test that the model of pipelines of all kinds notices what makewhole could say or do wrongly."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.histories.pipelines.check import differences
from tests.histories.pipelines.draw import KINDS, draw
from tests.histories.pipelines.events import Event, History, Item
from tests.histories.pipelines.held import Copy, Held, Seen
from tests.histories.pipelines.orders import FILTERS, Values, order_of, values_of
from tests.histories.pipelines.stores import TABLES
from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.formats import FORMATS
from tests.histories.shapes.registry_formats import REGISTRY_FORMATS
from tests.histories.shapes.whole_formats import WHOLE_FORMATS

pytestmark = pytest.mark.unit

HISTORY = History(
    seed=1,
    record_format="json",
    key="id",
    store="table",
    partitions=1,
    is_repairing=True,
    compared=tuple(TYPES),
    of_store_hop=None,
    where=None,
)
A, B = (values_of(order_of(1, item)) for item in (Item(1, 0), Item(1, 0, 1)))
LOST: Mapping[str, Mapping[str, tuple[str, str]]] = {"store": {"O1": ("missing", "lost_after_topic")}}
DOUBTFUL: Mapping[str, Mapping[str, tuple[str, str]]] = {"store": {"O1": ("pending", "in_doubt")}}


def held(ledger: list[Values], records: list[Values], rows: list[Values], *, is_taken: bool = True) -> Held:
    """Return what places hold of one key."""
    return Held(
        HISTORY,
        ledger=[Copy("O1", row, 0) for row in ledger],
        records=[Copy("O1", record, 0, at=(0, at), is_taken=is_taken) for at, record in enumerate(records)],
        rows=[Copy("O1", row, 0) for row in rows],
    )


WHOLE, GAP = held([A], [A], [A]), held([A], [A], [])
IN_DOUBT = replace(GAP, doubts=frozenset(["load-1"]))
UNSENT = replace(held([A], [], []), doubts=frozenset(["other-1"]))
NEVER_SENT: Mapping[str, Mapping[str, tuple[str, str]]] = {"ledger": {"O1": ("missing", "never_produced")}}
UNSETTLED: Mapping[str, Mapping[str, tuple[str, str]]] = {"ledger": {"O1": ("pending", "in_flight")}}

OPEN = replace(held([A], [], []), open=frozenset(["O1"]))
TWO_WRONG, TWO_ROWS = held([A], [A], [B, B]), held([A], [A], [A, B])
TWICE: Mapping[str, Mapping[str, tuple[str, str]]] = {"store": {"O1": ("duplicate", "written_before_committed")}}


def seen(*moments: Held, state: str = "certified", **more: object) -> Seen:
    window = Seen(0, {}, {0: (0, 9)}, moments=list(moments), state=state, reason="1 key missing, 0 allowed")
    return replace(window, **more)  # type: ignore[arg-type]


def wrong(window: Seen) -> str:
    return "\n".join(differences(window))


def test_what_is_right_is_right() -> None:
    assert wrong(seen(WHOLE, WHOLE)) == ""
    assert wrong(seen(GAP, GAP, state="gaps", found=LOST)) == ""
    assert wrong(seen(UNSENT, UNSENT, found=UNSETTLED)) == ""
    assert wrong(seen(UNSENT, UNSENT, state="gaps", found=NEVER_SENT)) == ""
    assert wrong(seen(GAP, WHOLE, found=LOST, before=GAP, after=WHOLE)) == ""
    assert wrong(seen(IN_DOUBT, IN_DOUBT, found=DOUBTFUL)) == ""
    assert wrong(seen(OPEN, OPEN, found=UNSETTLED)) == ""
    assert wrong(seen(TWO_WRONG, TWO_WRONG, state="gaps", found=TWICE, before=TWO_WRONG, after=TWO_WRONG)) == ""


@pytest.mark.parametrize(
    ("moment", "hop", "verdict"),
    [
        (held([A], [], []), "ledger", "missing"),
        (held([], [A], [A]), "ledger", "unexpected"),
        (held([A], [A, A], [A]), "ledger", "duplicate"),
        (held([A], [B], [B]), "ledger", "mismatched"),
        (OPEN, "ledger", "pending"),
        (held([A], [A], []), "store", "missing"),
        (held([A], [A], [A, A]), "store", "duplicate"),
        (held([A], [A], [B]), "store", "mismatched"),
        (held([A], [A], [A], is_taken=False), "store", "unexpected"),
        (held([], [], [A]), "store", "unexpected"),
        (IN_DOUBT, "store", "pending"),
        (replace(IN_DOUBT, overdue=frozenset(["O1"])), "store", "missing"),
        (replace(held([A], [A], [B]), marked=frozenset(["O1"])), "store", "pending"),
        (replace(held([], [], [A]), marked=frozenset(["O1"])), "store", "undecidable"),
    ],
)
def test_a_window_that_is_silent_about_it_is_wrong(moment: Held, hop: str, verdict: str) -> None:
    assert f"{hop} hop, O1: said None (None), right is {verdict}" in wrong(seen(moment, moment))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (seen(GAP, GAP, found=LOST), "certified over O1 on the store hop"),
        (seen(UNSENT, UNSENT, found=NEVER_SENT), "certified over O1 on the ledger hop"),
        (seen(WHOLE, WHOLE, state="gaps"), "nothing is wrong any more, and it is not certified"),
        (seen(WHOLE, WHOLE, found=LOST, state="gaps"), "store hop, O1: said missing"),
        (seen(GAP, GAP, found=LOST, state="error"), "the window came to no end"),
        (seen(GAP, GAP, found=LOST, state="gaps", reason=""), "there is no reason"),
        (seen(GAP, GAP, found={"store": {"O1": ("missing", "in_doubt")}}), "because of in_doubt"),
        (seen(IN_DOUBT, IN_DOUBT, found={"store": {"O1": ("pending", "not_consumed")}}), "because of not_consumed"),
        (seen(WHOLE, WHOLE, before=WHOLE, after=held([A], [A], [A, A])), "was written to, and is right"),
        (seen(IN_DOUBT, WHOLE, before=IN_DOUBT, after=WHOLE), "was written to, and is pending"),
        (seen(GAP, GAP, found=LOST, state="gaps", before=GAP, after=GAP), "was missing, and was not repaired"),
        (seen(GAP, WHOLE, found=LOST, before=GAP, after=held([A], [A], [B])), "was repaired wrongly"),
        (seen(OPEN, OPEN, found=NEVER_SENT, state="gaps"), "ledger hop, O1: said missing"),
        (
            seen(TWO_ROWS, TWO_ROWS, found=TWICE, state="gaps", before=TWO_ROWS, after=TWO_ROWS),
            "was duplicate, and was not repaired",
        ),
        (
            seen(held([A], [B], []), WHOLE, before=held([A], [B], []), after=held([A], [B], [B])),
            "was written, and its source is disputed",
        ),
        (seen(WHOLE, WHOLE, before=WHOLE, after=held([A], [A, A], [A])), "was sent, and no hop lacks it"),
    ],
)
def test_a_wrong_answer_or_repair_is_noticed(window: Seen, expected: str) -> None:
    assert expected in wrong(window)


def test_every_kind_is_drawn() -> None:
    histories = [draw(seed, frozenset(KINDS)) for seed in range(400)]
    assert {type(event) for history in histories for event in history.events} == set(Event.__args__)
    assert {history.store for history in histories} == {*TABLES, "iceberg", "files", "topic"}
    assert {history.record_format for history in histories} == {
        made.name for made in (*FORMATS, *REGISTRY_FORMATS, *WHOLE_FORMATS)
    }
    assert {history.key for history in histories} == {"id", "position", "sequence"}
    assert {history.where for history in histories} == {None, *FILTERS}
    assert {history.produces for history in histories} == {True, False}
    assert draw(7, frozenset(KINDS)) == histories[7] != histories[8]


def test_a_changed_event_has_one_other_value() -> None:
    assert sum(left != other for left, other in zip(A, B, strict=True)) == 1
