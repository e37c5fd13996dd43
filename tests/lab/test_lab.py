"""Test that makewhole judges every fault of the table rightly, made on a real cluster.

make lab                                  all faults
make lab LAB_ARGS="--lab-rows 6,9"        some
make lab LAB_ARGS="--lab-seeds 10"        each in ten variations
"""

import pytest

from tests.lab.report import record
from tests.lab.scenario import Lab, Scenario, check

pytestmark = [pytest.mark.lab, pytest.mark.on_spark, pytest.mark.timeout(600)]


def test_makewhole_says_what_is_true(scenario: Scenario, seed: int, lab: Lab, request: pytest.FixtureRequest) -> None:
    """Takes long: a cluster, a pipeline with its fault, and a window on Spark."""
    repeat = f'{scenario.id}, seed {seed}; again: make lab LAB_ARGS="--lab-rows {scenario.row} --lab-seed {seed}"'
    try:
        outcome = scenario.run(lab)
        check(outcome)
    except Exception as error:
        error.add_note(repeat)
        raise
    results = request.config.getoption("lab_results", default=None)
    if results is not None and seed == 1:
        record(results, scenario, outcome)
