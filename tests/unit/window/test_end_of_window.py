"""Test the line that says how a window ended."""

from typing import Any

import pytest

from makewhole.window.certifying.end_of_window import end_of_window

pytestmark = pytest.mark.unit

LABEL = "window 3 (revision 1) of flights"
GAPS: dict[str, Any] = {
    "state": "gaps",
    "reason": "missing: 41 of 900",
    "plan": None,
    "accepted": 0,
    "handed_over": 0,
    "certificate": None,
}
CERTIFIED: dict[str, Any] = {
    "state": "certified",
    "reason": None,
    "plan": "flights-3 done",
    "accepted": 2,
    "handed_over": 1_000,
    "certificate": 7,
}


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (GAPS, f"{LABEL}: gaps; missing: 41 of 900"),
        (
            {**GAPS, "reason": None, "gaps": 1_050, "left": 50},
            f"{LABEL}: gaps; 1,050 found, 1,000 whole again",
        ),
        ({**GAPS, "reason": None, "gaps": 1, "left": 2}, f"{LABEL}: gaps; 1 found, 0 whole again"),
        (CERTIFIED, f"{LABEL}: certified; plan flights-3 done; 2 accepted; 1,000 handed over; certificate 7"),
        ({**GAPS, "reason": "\x1b[2Jx\ny"}, f"{LABEL}: gaps; \\x1b[2Jx\\ny"),
        ({**GAPS, "reason": "x" * 900}, f"{LABEL}: gaps; {'x' * 459}…"),
    ],
)
def test_end_of_a_window_is_one_line_of_at_most_500_characters(ended: dict[str, Any], line: str) -> None:
    assert end_of_window(LABEL, **ended) == line
    assert len(line) <= 500
