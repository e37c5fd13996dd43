"""Test what a run shows at its end of findings that are only reported."""

import io

import pytest
from rich.console import Console

from makewhole.cli.documents import unanswered_document
from makewhole.cli.runs.run import show_result
from makewhole.compensation.planning.unanswered import Unanswered
from makewhole.config.hops.suggested import Suggestion
from makewhole.model.hops import Remedy
from makewhole.model.refusal import Refusal, RefusalCode

pytestmark = pytest.mark.unit

FOUND = Unanswered(
    hop="outbox→flights",
    keys=41,
    suggestion=Suggestion(verdict="missing", remedy=Remedy.PRODUCE, does="would send them into flights, from outbox"),
    drafted=41,
    actions=40,
    refused={Refusal(RefusalCode.OTHER, "[bold]it\x1b waits"): 1},
    needs_approval=True,
)
WINDOW = {
    "pipeline": "flights",
    "window": 3,
    "revision": 1,
    "state": "gaps",
    "reason": "missing: 41 of 900",
    "from": None,
    "to": "2013-01-02T00:00:00+00:00",
    "hops": [],
    "handed_over": {"keys": 0},
    "incidents": [],
    "continuations": [],
    "accepted": {"findings": 0, "hops": [], "acceptances": [], "open_again": {}},
    "older_open": {"windows": 0, "findings": 0, "first_window": None, "since": None},
    "certificate": None,
    "plan": None,
    "failed_steps": [],
    "revoked": None,
    "failures": ["missing: 41"],
}


def test_people_see_what_is_not_written_and_the_line_that_would_have_it_written() -> None:
    out = io.StringIO()
    show_result(Console(file=out, width=300, no_color=True), {**WINDOW, "unanswered": [unanswered_document(FOUND)]})

    assert out.getvalue().splitlines()[3:] == [
        "gate: missing: 41",
        "41 missing on outbox→flights: nothing is written, because the remedy is `report`",
        "  `missing: produce` would send them into flights, from outbox: 40 actions at most; it would wait for a "
        "person",
        "  `missing: produce` would leave 1 key alone: [bold]it\\x1b waits",
        "  To switch it on, write `compensation: {missing: produce}` on hop outbox→flights, or add it to what the hop "
        "has there",
        "see them: makewhole findings flights --window 3",
    ]


def test_programs_get_the_same_as_data() -> None:
    assert unanswered_document(FOUND) == {
        "from": "outbox",
        "to": "flights",
        "verdict": "missing",
        "keys": 41,
        "remedy": "produce",
        "line": "missing: produce",
        "does": "would send them into flights, from outbox",
        "drafted": 41,
        "actions": 40,
        "refused": {"[bold]it\x1b waits": 1},
        "refused_as_a_whole": None,
        "needs_approval": True,
        "messages": FOUND.sentences(),
    }
