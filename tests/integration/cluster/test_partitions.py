"""Test that the report of a window is the same on a cluster and on one machine, whatever the number of Spark's
partitions, and whatever the order in which rows and records came."""

from dataclasses import replace

import pytest

from tests.integration.cluster.application import Submitter
from tests.integration.cluster.conftest import ClusterShop

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

PARTITIONS = 64
TASKS_OF_THE_SNAPSHOT = {1: 4, 2: 8, 7: 28, 64: 57}
"""Spark's partitions → the number of tasks in which the topic is read: four for each, and at most one for each of the
topic's partitions that has a record."""


@pytest.mark.parametrize("partitions", [PARTITIONS])
def test_the_number_of_partitions_does_not_change_the_report(
    shop: ClusterShop, submitter: Submitter, local: Submitter
) -> None:
    expected = shop.judged(local)
    assert expected["findings"].count("\n") == 11

    for runner, numbers in ((submitter, (1, 2, 7, 64)), (local, (1, 64))):  # `expected` was made with local[2]
        for partitions in numbers:
            logged = replace(runner, folder=runner.folder / f"{partitions}").with_event_log()
            divided = logged.with_settings({"spark.default.parallelism": str(partitions)})

            assert shop.judged(divided) == expected
            assert TASKS_OF_THE_SNAPSHOT[partitions] in divided.tasks_of_stages()


def test_rows_and_records_in_another_order_give_the_same_report(shop: ClusterShop, submitter: Submitter) -> None:
    """But for what names their places, and the topic, which is another one."""
    before = shop.judged(submitter)

    shop.put_in_another_order()

    after = shop.judged(submitter)
    assert {name for name in after if after[name] != before[name]} == {"content", "findings"}
