"""Test the demo's verdict on itself: found must be what was planted, key by key."""

from typing import Any

import pytest

from makewhole.cli.demo.outcome import DemoOutcome, window_text
from makewhole.cli.demo.planted_and_found import Line, found_ones, lines, planted_ones
from makewhole.model.self_check.planted import Discrepancy

pytestmark = pytest.mark.unit

TO_TOPIC, TO_STORE = "outbox→flights", "flights→warehouse"


def one(hop: str, verdict: str, key: str) -> Discrepancy:
    return Discrepancy(hop=hop, verdict=verdict, key=key)


def outcome(
    *, missed: list[Discrepancy], invented: list[Discrepancy], states: list[str], holds: bool = True
) -> DemoOutcome:
    return DemoOutcome(
        lines=[],
        missed=missed,
        invented=invented,
        windows=[{"window": number, "state": state} for number, state in enumerate(states, 1)],
        expected_windows=2,
        proof={"holds": holds, "wrong": [] if holds else [{}]},
        seconds=1.0,
        airflow_url="http://127.0.0.1:1",
    )


def test_both_sides_are_read_into_the_same_words() -> None:
    planted = planted_ones([{"hop": TO_TOPIC, "key": "a", "verdict": "missing", "misdeed": "send skipped"}])
    gaps = found_ones(
        [
            {"hop": {"from": "outbox", "to": "flights"}, "key": "a", "verdict": "missing", "window": 1},
            {"hop": {"from": "outbox", "to": "flights"}, "key": "b", "verdict": "pending", "window": 1},
        ]
    )
    assert planted == gaps == {one(TO_TOPIC, "missing", "a")}


def test_one_missed_and_one_invented_do_not_cancel() -> None:
    planted = frozenset({one(TO_STORE, "missing", "a"), one(TO_STORE, "missing", "b")})
    gaps = frozenset({one(TO_STORE, "missing", "b"), one(TO_STORE, "missing", "c")})
    assert lines(planted, gaps, frozenset({one(TO_STORE, "missing", "a")})) == [
        Line(
            hop=TO_STORE,
            verdict="missing",
            planted=2,
            found=2,
            missed=1,
            invented=1,
            repaired=1,
            reported=0,
            still_open=1,
        )
    ]


def test_a_second_copy_in_the_topic_is_reported_not_repaired() -> None:
    planted = frozenset({one(TO_TOPIC, "duplicate", "a"), one(TO_TOPIC, "duplicate", "b")})
    line = lines(planted, frozenset({one(TO_TOPIC, "duplicate", "a")}), frozenset())[0]
    assert (line.repaired, line.reported, line.still_open) == (0, 1, 1)


def test_what_the_proof_still_sees_is_open_even_when_it_was_not_found() -> None:
    line = lines(frozenset(), frozenset(), frozenset({one(TO_STORE, "duplicate", "a")}))[0]
    assert (line.planted, line.found, line.still_open) == (0, 0, 1)


def test_success_needs_the_findings_the_windows_and_the_proof() -> None:
    lost = one(TO_STORE, "missing", "a")
    certified = ["certified", "certified"]
    assert outcome(missed=[], invented=[], states=certified).problems == []
    assert outcome(missed=[lost], invented=[lost], states=certified).problems == [
        "found is not planted: 1 missed, 1 invented"
    ]
    assert outcome(missed=[], invented=[], states=["certified"]).problems == [
        "of 2 windows 1 exist and 1 are certified"
    ]
    assert outcome(missed=[], invented=[], states=["certified", "gaps"]).problems == [
        "of 2 windows 2 exist and 1 are certified"
    ]
    assert outcome(missed=[], invented=[], states=certified, holds=False).problems == [
        "the independent proof fails for 1 keys"
    ]


def test_a_window_is_reported_with_the_reach_of_its_proof_and_what_it_leaves_to_others() -> None:
    counts = {"before_baseline": 2}
    window: dict[str, Any] = {
        "state": "certified",
        "handed_over": {"keys": 1_200},
        "hops": [{"counts": counts}, {"counts": counts}],
        "certificate": {"uri": "file:/c/000001.json", "reach": {"from": "log"}},
    }
    assert (
        window_text(window) == "certified, from the log, 1,200 handed over, 4 before the baseline, file:/c/000001.json"
    )
    plain = window | {"handed_over": {"keys": 0}, "hops": [], "certificate": None, "state": "gaps"}
    assert window_text(plain) == "gaps"
