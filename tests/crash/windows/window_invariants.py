"""Check what must be true when a step of a window is over, whatever happened on the way."""

from typing import Any

from tests.crash.states.window_state import WindowDurable
from tests.crash.windows.window_scenario import DAYS, ORDERS, PHASES, POINTS, WINDOW

_HOPS = ("orders→warehouse", "outbox→orders")
_FOUND = [("O300", "missing"), ("O301", "duplicate"), ("O302", "mismatched")]
_ORDER = (*PHASES,)


def assert_window(phase: str, state: WindowDurable) -> None:
    """Check for one window, one snapshot of each point, one verdict of each hop, one answer of the gate and one
    certificate; that no file is missing, and that no lease is held."""
    is_over = [name for name in _ORDER if _ORDER.index(name) <= _ORDER.index(phase)]
    journal = state.journal
    assert [(row["number"], row["revision"]) for row in journal["window"]] == [(n + 1, 1) for n in range(WINDOW)]
    assert sorted(row["point"] for row in _of_window(state, "snapshot")) == _when("snapshot" in is_over, POINTS)
    _assert_verdicts(state, is_reconciled="reconcile" in is_over)
    gates = [(row["stage"], row["answer"]) for row in _of_window(state, "gate_report")]
    assert gates == _when("validate" in is_over, [("reconciled", "PASS")])
    _assert_chain(state, DAYS + ("certify" in is_over))
    assert [row for row in journal["lease"] if row["expires_at"] == "held"] == []
    assert [row["windows"] for row in journal["key_merge"]] == _when(
        "merge" in is_over, [{str(number + 1): 1 for number in range(WINDOW)}]
    )
    if "merge" in is_over:
        assert {row["files"] == {} for row in journal["key_run"]} == {True}, "files of merged runs are kept"
    # A mark that was not finished is too young to go with the other files of attempts: they wait for a later night.
    waiting = {row["kind"] for row in journal["removal"] if row["removed_at"] is None}
    assert waiting <= {"attempts"}, "not all is gone that was to go"
    kinds = [(row["kind"], row["number"]) for row in journal["removal"]]
    wanted = [(kind, number + 1) for kind in ("archives", "attempts") for number in range(DAYS)]
    assert sorted(kinds) == _when("keep" in is_over, wanted)


def _when(is_so: bool, wanted: list[Any]) -> list[Any]:
    return wanted if is_so else []


def _of_window(state: WindowDurable, table: str) -> list[dict[str, Any]]:
    return [row for row in state.journal[table] if (row["number"], row["revision"]) == (WINDOW, 1)]


def _assert_verdicts(state: WindowDurable, *, is_reconciled: bool) -> None:
    """Check the counts of each hop, the findings, and that the key index has a run of the window."""
    results = {row["hop"]: row["counts"] for row in _of_window(state, "hop_result")}
    assert sorted(results) == _when(is_reconciled, sorted(_HOPS))
    findings = sorted((row["key"], row["verdict"]) for row in _of_window(state, "finding"))
    assert findings == _when(is_reconciled, _FOUND)
    runs = [row["number"] for row in state.journal["key_run"]]
    assert sorted(runs) == [number + 1 for number in range(DAYS + is_reconciled)]
    if is_reconciled:
        clean, gaps = results["outbox→orders"], results["orders→warehouse"]
        assert (clean["matched"], gaps["matched"]) == (ORDERS, ORDERS - len(_FOUND))
        assert [gaps[verdict] for _, verdict in _FOUND] == [1, 1, 1]


def _assert_chain(state: WindowDurable, entries: int) -> None:
    """Check that each window has one certificate, and each of them its anchor."""
    chain = [(row["ordinal"], row["number"], row["kind"]) for row in state.journal["certificate"]]
    assert sorted(chain) == [(number + 1, number + 1, "certificate") for number in range(entries)]
    anchors = sorted(path for path in state.found if path.startswith("shop/certificates/") and path.endswith(".json"))
    assert anchors == [f"shop/certificates/{number + 1:06d}.json" for number in range(entries)]
