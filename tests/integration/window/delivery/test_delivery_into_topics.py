"""Test what is found of topics, their producers and the groups that read them, each wrong in one way."""

from collections.abc import Mapping
from typing import Any

import pytest

from makewhole.model.delivery.claims import Delivery
from tests.integration.window.delivery.findings import BROKEN, RIGHT, RISK, UNKNOWN, Broken, claim, examined, found
from tests.world.orders import orders
from tests.world.topics import commit_group, delete_records, make_topic
from tests.world.windows import ReconciledShop

DAY_MS = 86_400_000

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"min_insync_replicas": 1}, [(BROKEN, "min.insync.replicas")]),
        ({"min_insync_replicas": 3}, [(RISK, "min.insync.replicas")]),
        ({"unclean_leader_election_enable": "true"}, [(BROKEN, "unclean.leader.election.enable")]),
        ({"retention_bytes": 1_000_000}, [(RISK, "retention.bytes")]),
        ({"cleanup_policy": "compact"}, [(BROKEN, "cleanup.policy")]),
        ({"max_message_bytes": 600}, [(RISK, "max.message.bytes")]),
        ({"message_timestamp_type": "LogAppendTime"}, []),
    ],
    ids=str,
)
def test_each_wrong_setting_of_a_topic_is_found_alone(
    clean: ReconciledShop, settings: Mapping[str, object], expected: list[Broken]
) -> None:
    clean.change_topic(**settings)

    assert found(clean) == expected


def test_records_are_kept_for_an_interval_settle_and_the_longest_wait(clean: ReconciledShop) -> None:
    """The orders are years old: with less they are deleted at once."""
    clean.change_topic(retention_ms=9_000 * DAY_MS)
    clean.describe(hop={"consumer_group": clean.topic}, max_age="9000d")
    records, offsets = examined(clean).weaknesses
    assert (records.severity, records.setting, records.value) == (BROKEN, "retention.ms", "9,000 d")
    assert records.expected == "at least 9,001 d"
    assert (offsets.severity, offsets.setting, offsets.value) == (RISK, "offsets.retention.minutes", "7 d")
    clean.describe(hop={"consumer_group": clean.topic}, max_age="8999d")
    assert found(clean) == [(RISK, "offsets.retention.minutes")]


def test_a_pipeline_that_accepts_losses_does_not_ask_for_what_prevents_them(clean: ReconciledShop) -> None:
    claim(clean, "at-most-once")
    clean.change_topic(min_insync_replicas=1, unclean_leader_election_enable="true", retention_bytes=10**9)
    clean.sql("alter table warehouse set unlogged")

    assert [setting for _, setting in found(clean)] == ["unique key", "transactional.id"]


def test_deletions_of_a_compacted_topic_are_kept_as_long_as_they_are_needed(clean: ReconciledShop) -> None:
    clean.sql("alter table warehouse add primary key (id)")
    described: dict[str, Any] = {"hop": {"consumer_group": clean.topic}, "is_upsert": True, "is_observing": True}
    clean.describe(topic_key="kafka.key", **described)
    clean.change_topic(cleanup_policy="compact", delete_retention_ms=60_000)

    assert found(clean) == [(BROKEN, "delete.retention.ms")]
    clean.change_topic(delete_retention_ms=3 * 86_400_000)
    assert found(clean) == []
    clean.describe(**described)
    assert found(clean) == [(RISK, "cleanup.policy")]


def test_one_replica_is_named_whatever_min_insync_replicas_is(clean: ReconciledShop) -> None:
    lonely = f"{clean.topic}-lonely"
    make_topic(clean.admin, lonely, settings=RIGHT)
    clean.more_topics.append(lonely)
    clean.topic = lonely
    clean.describe()
    clean.send(orders([9]), settings={"enable.idempotence": True})

    assert found(clean)[0] == (BROKEN, "replication.factor")


@pytest.mark.parametrize(
    ("producer", "delivery", "expected"),
    [
        ({"enable.idempotence": False, "acks": "1"}, "at-least-once", [(UNKNOWN, "acks")]),
        ({"enable.idempotence": False, "acks": "0"}, "at-most-once", [(BROKEN, "enable.idempotence")]),
        (
            {"enable.idempotence": False, "acks": "all"},
            "exactly-once",
            [(BROKEN, "enable.idempotence"), (RISK, "transactional.id"), (UNKNOWN, "acks")],
        ),
        ({"enable.idempotence": True}, "exactly-once", [(RISK, "transactional.id")]),
    ],
)
def test_what_a_log_shows_of_its_producers_is_inferred_and_the_rest_is_not_known(
    clean: ReconciledShop, producer: Mapping[str, str | bool], delivery: str, expected: list[Broken]
) -> None:
    """The clean pipeline's own records are idempotent: beside them no producer has a transactional id."""
    clean.sql("alter table warehouse add primary key (id)")
    claim(clean, delivery)
    clean.send(orders([7]), settings=producer)
    commit_group(clean.bootstrap, clean.topic, clean.topic, 6)

    got = found(clean)

    assert [item for item in got if item not in expected] in ([], [(RISK, "transactional.id")])
    assert [item for item in expected if item not in got] == []


def test_transactions_leave_only_the_isolation_of_readers_unknown(clean: ReconciledShop) -> None:
    clean.sql("alter table warehouse add primary key (id)")
    delete_records(clean.admin, clean.topic, {0: 5})
    claim(clean, "exactly-once")
    clean.end_transaction(clean.begin_transaction(orders([7, 8])), is_committed=True)
    commit_group(clean.bootstrap, clean.topic, clean.topic, 8)

    assert found(clean) == [(UNKNOWN, "isolation.level")]


def test_a_group_that_stands_before_the_end_of_a_transaction_does_not_lag(clean: ReconciledShop) -> None:
    """A consumer that commits the last record and one; behind it stand a marker, and an aborted transaction."""
    clean.sql("alter table warehouse add primary key (id)")
    delete_records(clean.admin, clean.topic, {0: 5})
    claim(clean, "exactly-once")
    clean.end_transaction(clean.begin_transaction(orders([7, 8])), is_committed=True)
    commit_group(clean.bootstrap, clean.topic, clean.topic, 7)
    assert found(clean) == [(UNKNOWN, "isolation.level")]

    clean.end_transaction(clean.begin_transaction(orders([9])), is_committed=False)
    assert (RISK, "lag") not in found(clean)

    clean.end_transaction(clean.begin_transaction(orders([10])), is_committed=True)
    assert (RISK, "lag") in found(clean)


def test_a_log_without_records_says_nothing_of_its_producers(clean: ReconciledShop) -> None:
    delete_records(clean.admin, clean.topic, {0: 5})

    assert found(clean) == [(UNKNOWN, "acks, enable.idempotence")]


def test_a_group_that_lags_is_found_once_its_records_are_older_than_settle(clean: ReconciledShop) -> None:
    commit_group(clean.bootstrap, clean.topic, clean.topic, 2)

    (weakness,) = examined(clean).weaknesses

    assert (weakness.severity, weakness.setting) == (RISK, "lag")
    assert weakness.value == "3 offsets older than `settle` (0 ms) are not read (partition 0)"
    clean.describe(hop={"consumer_group": clean.topic}, settle="9000d")
    assert found(clean) == [(RISK, "offsets.retention.minutes")]


def test_a_group_that_has_committed_nothing_or_stands_outside_its_log(clean: ReconciledShop) -> None:
    commit_group(clean.bootstrap, clean.topic, clean.topic, 2)
    delete_records(clean.admin, clean.topic, {0: 4})
    assert found(clean) == [(BROKEN, "committed offset")]
    clean.describe(hop={"consumer_group": f"no-{clean.topic}"})
    assert found(clean) == [(UNKNOWN, "committed offset")]
    clean.describe()
    assert found(clean) == [(UNKNOWN, "consumer_group")]


def test_a_group_ahead_of_the_sinks_own_offsets(clean: ReconciledShop) -> None:
    clean.sql("create table progress (topic text, partition_no int, next_offset bigint)")
    clean.sql("insert into progress values (%s, 0, 3)", clean.topic)
    progress = "{table: progress, topic: topic, partition: partition_no, offset: next_offset}"
    clean.describe(hop={"consumer_group": clean.topic, "progress": progress})

    answer = examined(clean)

    (weakness,) = answer.weaknesses
    assert (weakness.severity, weakness.setting) == (BROKEN, "committed offset")
    assert weakness.value == "ahead of the sink's own (partition 0: 5, and 3 in its table)"
    assert answer.claims[1].delivery is Delivery.EXACTLY_ONCE
    clean.sql("update progress set next_offset = 5")
    assert found(clean) == []
