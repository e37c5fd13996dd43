"""The page about faults says what the lab ran, and the lab has every fault that it should have."""

import json

import pytest

from tests.lab.report import PAGE, RESULTS, page
from tests.lab.scenario import load, selected

pytestmark = pytest.mark.unit

TOPIC_SIDE, REPAIRS = {*range(1, 21), 33, 34}, {*range(28, 33), 35, 37, 38, 39, 44}
CONSUMERS, STORES, VALUES = {36, 42, 43, 56, 70, 71}, {*range(23, 28), 48, 78}, {40, 41, 62, 63}
TRUTHS = {*range(45, 48), *range(49, 56), *range(57, 62), *range(64, 70), *range(72, 78)}
PATTERNS, COPIERS, FILES = {21, 22, *range(80, 98)}, {*range(111, 120)}, {*range(151, 160)}
ICEBERG = {*range(141, 148)}
KAFKAS_OWN, PUBLISHED, ADDED_UP, LOST_FILES = {*range(131, 135)}, {129, 130}, {161}, {162, 163}


def test_the_page_is_what_the_lab_said() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == page(load(), results), "run `make lab`"


def test_every_scenario_is_reported_and_no_other() -> None:
    assert set(json.loads(RESULTS.read_text(encoding="utf-8"))) == set(load())


def test_the_lab_has_every_fault_of_the_topic_side_of_repairs_of_consumers_and_of_patterns() -> None:
    rows = {scenario.row for scenario in load().values()}
    known = TOPIC_SIDE | REPAIRS | CONSUMERS | STORES | VALUES | TRUTHS | PATTERNS | COPIERS | FILES
    assert rows == known | KAFKAS_OWN | PUBLISHED | ADDED_UP | ICEBERG | LOST_FILES


def test_rows_are_chosen_by_number_in_the_order_of_the_table() -> None:
    assert [scenario.row for scenario in selected("34,1")] == [1, 34]
    assert selected("") == list(load().values())
    assert 0 < len(selected("short")) < 8


def test_a_row_that_the_lab_does_not_have_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"the lab has no rows \[0\]"):
        selected("0,1")


def test_a_row_says_how_far_the_proof_reaches_and_what_is_handed_over_or_before_the_baseline() -> None:
    (scenario,) = [row for row in load().values() if row.id == "10-acks_of_one_without_ledger"]
    hop = "orders→warehouse"
    window = {
        "label": "",
        "state": "certified",
        "reason": None,
        "accounting": {},
        "matched": {hop: 3},
        "found": {hop: [["pending", "in_flight", 2]]},
        "before_baseline": {hop: 4},
        "incidents": [],
        "reach": "log",
        "not_excluded": ["what is not in the log of orders"],
    }

    text = page({scenario.id: scenario}, {scenario.id: {"truth": "", "naive": [], "windows": [window]}})

    assert "| **certified, from the log**, 2 handed over (`in_flight`), 4 `before_baseline` |\n" in text
    assert "\n- **certified, from the log**\n" in text
    assert f"\n  - {hop}: 3 matched, 4 `before_baseline`, 2 handed over (`in_flight`)\n" in text
    assert "\n  - not excluded: what is not in the log of orders\n" in text
    in_ledger = window | {"reach": "ledger"}
    text = page({scenario.id: scenario}, {scenario.id: {"truth": "", "naive": [], "windows": [in_ledger]}})
    assert "| **certified**, 2 handed over" in text


def test_a_row_says_what_a_scenario_asks_for_besides() -> None:
    (scenario,) = [row for row in load().values() if row.id == "53-resend_behind_a_filter"]
    window = {"label": "", "state": "gaps", "reason": "1 key", "accounting": {}, "matched": {}, "found": {}}
    window |= {"incidents": [], "messages": ["a→b: 2 open", "b→c: 1 contained"]}

    text = page({scenario.id: scenario}, {scenario.id: {"truth": "", "naive": [], "windows": [window]}})

    assert "| **gaps**, a→b: 2 open, b→c: 1 contained |\n" in text
    assert "\n- **gaps**\n  - a→b: 2 open\n  - b→c: 1 contained\n  - “1 key”\n" in text
