"""Test that the report of a window is the same on a cluster whatever the number of Spark's partitions, and whatever the
order in which rows and records came."""

import pytest

from tests.integration.cluster.application import Submitter
from tests.integration.cluster.conftest import ClusterShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_the_number_of_partitions_does_not_change_the_report(
    shop: ClusterShop, submitter: Submitter, local: Submitter
) -> None:
    settings = [{"spark.default.parallelism": str(number)} for number in (1, 2, 7, 64)]

    reports = [shop.judged(submitter.with_settings(one)) for one in settings]

    assert reports == [shop.judged(local)] * 4


def test_rows_in_another_order_give_the_same_report(shop: ClusterShop, submitter: Submitter) -> None:
    before = shop.judged(submitter)
    for table in ("outbox", "warehouse"):
        shop.sql(f"create table shuffled as select * from {table} order by md5(id)")
        shop.sql(f"drop table {table}; alter table shuffled rename to {table}")

    after = shop.judged(submitter)

    assert {name: text for name, text in after.items() if name != "findings"} == {
        name: text for name, text in before.items() if name != "findings"
    }
