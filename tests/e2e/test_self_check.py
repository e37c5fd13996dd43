"""Test that a self-check makes its scratch objects, finds what it plants, and publishes it, in a real Airflow."""

import pytest

from tests.e2e.scenarios.unattended import SelfChecked
from tests.e2e.stage import until
from tests.world.metrics import TakenMetrics

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_a_self_check_finds_and_repairs_all_that_it_plants(self_checked: SelfChecked) -> None:
    """Takes long: a window with a repair is waited for."""
    skipped = dict.fromkeys(("approve", "report_watermark"), "skipped")
    assert self_checked.tasks == dict.fromkeys(self_checked.tasks, "success") | skipped
    assert {"plant_faults", "compare_faults", "compensate", "verify"} <= set(self_checked.tasks)
    result = self_checked.result
    assert (result["recall"], result["precision"], result["round"], result["window"]) == (1.0, 1.0, 1, 1)
    assert result["planted"] == result["found"] >= 5


def test_a_self_check_publishes_its_result(self_checked: SelfChecked, metrics: TakenMetrics) -> None:
    result, faults = self_checked.result, self_checked.result["planted"]
    assert self_checked.event == result
    assert self_checked.note.startswith(
        f"window 1 (revision 1) of self_checked: certified; {faults} found, {faults} whole again; plan self_checked-1-"
    )
    sentence = f"{faults} of {faults} planted faults found, recall 1.000, precision 1.000"
    assert self_checked.note.endswith(f"; self-check round 1: {sentence}")
    assert (self_checked.exit_code, self_checked.shown["last"]["sentence"]) == (0, sentence)
    assert "self_checked" not in self_checked.todo
    until(
        lambda: True if metrics.of("airflow.makewhole.self_check_recall", pipeline="self_checked") == 1.0 else None,
        90,
        lambda: sorted(name for name, _ in metrics.gauges if "self_check" in name),
    )


def test_the_page_of_a_repaired_run_shows_what_was_found_and_that_nothing_is_left(self_checked: SelfChecked) -> None:
    assert "<th>found</th><th>whole again</th><th>left</th>" in self_checked.page
    assert "source_keys" not in self_checked.page
