"""Test that the model of versions notices what makewhole could say or do wrongly."""

from dataclasses import replace

import pytest

from tests.histories.upserts.check import differences
from tests.histories.upserts.draw import KINDS, draw
from tests.histories.upserts.events import History, Version
from tests.histories.upserts.held import Held, Record, Seen
from tests.histories.watched import TableRow
from tests.world.shop import LEDGER_HOP, STORE_HOP

pytestmark = pytest.mark.unit

HISTORY = History(
    seed=1,
    partitions=1,
    version_type="bigint",
    has_ledger=True,
    has_version=True,
    is_blind=True,
    is_repairing=True,
)


def version(number: int, key: str = "K1", region: str = "EU") -> Version:
    return Version(key, number, 100 * number, region, 0, number)


def row(number: int, key: str = "K1", **more: object) -> TableRow:
    at = "2025-03-01T23:00:00+00:00"
    values = {"id": key, "number": 1, "amount": number, "version": number, "region": "EU", "at": at, "status": "new"}
    return values | more


def held(*records: Version, store: tuple[TableRow, ...] = (), outbox: tuple[TableRow, ...] = ()) -> Held:
    return Held(True, None, tuple(Record(0, at, of_key) for at, of_key in enumerate(records)), outbox, store)


def seen(*moments: Held, state: str = "certified", lo: int = 0, hi: int = 9, **more: object) -> Seen:
    window = Seen(0, ranges={0: (lo, hi)}, moments=list(moments), state=state, reason="1 key missing, 0 allowed")
    return replace(window, **more)  # type: ignore[arg-type]


def wrong(*windows: Seen) -> str:
    return "\n".join(differences(HISTORY, windows))


def test_what_is_right_is_right() -> None:
    right = held(version(1), version(2), store=(row(2),), outbox=(row(2),))
    assert wrong(seen(right)) == ""
    missing = held(version(1))
    assert wrong(seen(missing, state="gaps", found={(STORE_HOP, "K1"): ("missing", "lost_after_topic")})) == ""


@pytest.mark.parametrize(
    ("moment", "complaint"),
    [
        (held(version(1)), "certified over K1"),
        (held(version(1), version(2), store=(row(1),)), "nothing is said of K1, which is wrong"),
        (held(version(2), version(1), store=(row(1),)), "certified over K1"),
        (held(version(1), replace(version(2), is_deletion=True), store=(row(1),)), "certified over K1"),
        (held(store=(row(1),)), "certified over K1"),
        (held(version(1), store=(row(1), row(1))), "certified over K1"),
        (held(version(1), store=(row(1),), outbox=(row(2),)), "which the topic has not as the ledger"),
    ],
)
def test_a_certificate_over_what_is_wrong_is_wrong(moment: Held, complaint: str) -> None:
    assert complaint in wrong(seen(moment))


def test_an_old_version_that_comes_in_a_later_window_changes_nothing() -> None:
    set_back = held(version(1), version(2), version(1), store=(row(1),))
    assert "certified over K1" in wrong(seen(set_back, lo=2))
    kept = held(version(1), version(2), version(1), store=(row(2),))
    assert wrong(seen(kept, lo=2)) == ""


def test_a_false_alarm_is_wrong() -> None:
    right = held(version(1), store=(row(1),))
    said = wrong(seen(right, state="gaps", found={(STORE_HOP, "K1"): ("mismatched", "value_differs")}))
    assert "is said to be mismatched (value_differs), and is right" in said
    assert "nothing is wrong, and it is not certified" in said


def test_a_record_that_cannot_be_read_is_in_no_certified_window() -> None:
    damaged = Held(True, None, (Record(0, 0, version(1), "value"),))
    assert "a record of K1 cannot be read" in wrong(seen(damaged))
    assert wrong(seen(damaged, state="not_known")) == ""


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        ((row(1, status="shipped"),), "was right, and was written to"),
        ((), "has not the values of its latest version"),
        ((row(1), row(1)), "has not the values of its latest version"),
        ((row(1), row(5, "K7")), "K7: should have no row, and was given one"),
    ],
)
def test_a_repair_of_what_was_right_is_wrong(after: tuple[TableRow, ...], complaint: str) -> None:
    before = held(version(1), store=(row(1),))
    repaired = seen(before, before=before, after=replace(before, warehouse=after))
    assert complaint in wrong(repaired)


def test_a_change_that_no_plan_names_is_wrong() -> None:
    right = held(version(1), store=(row(1),))
    assert wrong(seen(right, unnamed=("K1 had status changed",))) == "window 1 (certified): K1 had status changed"


def test_what_is_sent_is_what_the_ledger_says_and_the_topic_lacks() -> None:
    before = held(version(1), store=(row(1),), outbox=(row(2),))
    verdicts = {(LEDGER_HOP, "K1"): ("missing", "never_produced")}
    for sent, complaint in (
        ([version(2)], ""),
        ([version(2), version(2)], "was sent 2 times"),
        ([version(3)], "the ledger does not say so"),
        ([version(1, "K2")], "K2 was sent, and the ledger does not say so"),
    ):
        more = tuple(Record(0, 5 + at, of_key) for at, of_key in enumerate(sent))
        after = replace(before, records=before.records + more)
        said = wrong(seen(before, state="gaps", found=verdicts, before=before, after=after))
        assert (complaint in said) if complaint else said == ""


def test_a_change_of_the_file_alone_is_no_reason_to_write() -> None:
    whole = held(version(1, region="US"), store=(row(1, region="US"),))
    narrowed = replace(whole, region="EU")
    earlier, now = (
        seen(whole),
        seen(narrowed, lo=1, state="gaps", before=narrowed, after=replace(narrowed, warehouse=())),
    )
    assert "by a change of the file alone" in wrong(earlier, now)


def test_every_kind_is_drawn() -> None:
    drawn = {type(event).__name__ for seed in range(60) for event in draw(seed, frozenset(KINDS)).events}
    assert drawn == {
        *("Change", "Send", "SendDamaged", "Load", "Rewrite", "Fulfil", "Delete", "Stray", "Purge", "Filter", "Window")
    }
    assert draw(7, frozenset(KINDS)) == draw(7, frozenset(KINDS)) != draw(8, frozenset(KINDS))
