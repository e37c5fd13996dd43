"""Test what `makewhole doctor` finds of a claimed delivery: three brokers and a durable PostgreSQL, each set wrongly in
one way."""

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg2
import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.model.delivery.claims import Delivery
from makewhole.model.delivery.weaknesses import Severity
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import PostgresServer
from makewhole.window.context import connections_of
from makewhole.window.delivery.examine import Examination, examine
from makewhole_spark.carrier import Carrier
from tests.world.databases import Databases
from tests.world.environment import enter, service_environment
from tests.world.orders import orders
from tests.world.topics import commit_group, delete_records, make_topic
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Broken = tuple[Severity, str]
BROKEN, RISK, UNKNOWN = Severity.BROKEN, Severity.RISK, Severity.UNKNOWN
DAY_MS = 86_400_000
RIGHT = {"min.insync.replicas": "2"}


@pytest.fixture(scope="module")
def brokers(server_folder: Path) -> Iterator[KafkaServer]:
    """Three brokers, as a clean pipeline needs them."""
    server = KafkaServer(server_folder / "three", nodes=3, heap_mb=256)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def durable(server_folder: Path) -> Iterator[Databases]:
    """A PostgreSQL that waits for its disk."""
    server = PostgresServer(server_folder / "durable", is_durable=True)
    server.start()
    made = Databases(server.dsn)
    yield made
    made.close()
    server.stop()


@pytest.fixture
def clean(
    carrier: Carrier,
    brokers: KafkaServer,
    durable: Databases,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ReconciledShop]:
    """A pipeline that claims at least once, and rests on nothing that is too little for that: five orders went from an
    idempotent producer into the store, and its group has read them."""
    with durable.of_a_test("test") as dsn:
        shop = ReconciledShop(carrier=carrier, bootstrap=brokers.bootstrap, dsn=dsn, journal=journal, folder=tmp_path)
        enter(monkeypatch, service_environment(shop, tmp_path))
        shop.describe(hop={"consumer_group": shop.topic})
        shop.make_tables()
        make_topic(shop.admin, shop.topic, replicas=3, settings=RIGHT)
        made = orders(range(5))
        shop.write("outbox", made)
        shop.send(made, settings={"enable.idempotence": True})
        shop.write("warehouse", made)
        commit_group(shop.bootstrap, shop.topic, shop.topic, 5)
        yield shop


def examined(shop: ReconciledShop) -> Examination:
    return examine(shop.pipeline, connections_of(shop.pipeline))


def found(shop: ReconciledShop) -> list[Broken]:
    """Return severity and setting of what is found; everything could be asked."""
    answer = examined(shop)
    assert answer.problems == ()
    return [(weakness.severity, weakness.setting) for weakness in answer.weaknesses]


def claim(shop: ReconciledShop, delivery: str, **hop: str) -> None:
    """Have all hops of the pipeline claim a delivery."""
    group = {"consumer_group": shop.topic}
    shop.describe(hop=group | {"delivery": delivery} | hop, ledger_hop={"delivery": delivery})


def test_a_pipeline_that_keeps_what_it_claims_has_no_finding(clean: ReconciledShop) -> None:
    answer = examined(clean)

    assert (answer.weaknesses, answer.problems) == ((), ())
    assert [(item.hop.name, item.delivery, item.is_derived) for item in answer.claims] == [
        ("outbox→orders", Delivery.AT_LEAST_ONCE, True),
        ("orders→warehouse", Delivery.AT_LEAST_ONCE, True),
    ]
    assert answer.producers["orders"]["records"] == {"plain": 0, "idempotent": 5, "transactional": 0}


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
    clean.describe(hop={"consumer_group": clean.topic}, is_upsert=True, has_version=False, is_observing=True)
    clean.change_topic(cleanup_policy="compact", delete_retention_ms=60_000)

    assert found(clean) == [(BROKEN, "delete.retention.ms")]
    clean.change_topic(delete_retention_ms=3 * 86_400_000)
    assert found(clean) == []


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


ALL_NULL = (
    "create function swallow() returns trigger language plpgsql as "
    "$$ begin if new.amount > 1000 then return null; end if; return new; end $$"
)
STAMPS = "create function stamp() returns trigger language plpgsql as $$ begin new.region := 'x'; return new; end $$"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["alter table warehouse set unlogged"], [(BROKEN, "persistence")]),
        (["alter table outbox set unlogged"], [(BROKEN, "persistence")]),
        (
            [ALL_NULL, "create trigger s before insert on warehouse for each row execute function swallow()"],
            [(RISK, "trigger s")],
        ),
        (
            [
                ALL_NULL,
                "create trigger s before insert on warehouse for each row execute function swallow()",
                "alter table warehouse disable trigger s",
            ],
            [],
        ),
        ([STAMPS, "create trigger s before insert on warehouse for each row execute function stamp()"], []),
        (
            ["create trigger s before update on warehouse for each row "
             "execute function suppress_redundant_updates_trigger()"],
            [(UNKNOWN, "trigger s")],
        ),
        (["create rule r as on insert to warehouse where new.amount > 9 do instead nothing"], [(RISK, "rule r")]),
        (["create rule r as on insert to warehouse do also notify orders"], []),
    ],
    ids=lambda value: str(value[-1])[:60] if value else "none",
)  # fmt: skip
def test_each_way_in_which_a_table_loses_rows_is_found(
    clean: ReconciledShop, statements: list[str], expected: list[Broken]
) -> None:
    for statement in statements:
        clean.sql(statement)

    assert found(clean) == expected


def test_a_database_and_a_role_that_do_not_wait_for_the_disk(clean: ReconciledShop) -> None:
    role, (name,) = f"loader_{uuid.uuid4().hex}", clean.sql("select current_database()")[0]
    clean.sql(f"create role {role}")
    clean.sql(f"alter role {role} in database {name} set synchronous_commit = off")
    try:
        (weakness, _) = examined(clean).weaknesses * 2
        assert (weakness.setting, weakness.value) == ("synchronous_commit", f"off for role {role}")
        clean.sql(f"alter database {name} set synchronous_commit = off")
        assert [item.value for item in examined(clean).weaknesses] == ["off", f"off for role {role}"]
        assert {item.remedy for item in examined(clean).weaknesses} == {
            f'alter database "{name}" set synchronous_commit = on',
            f'alter role "{role}" set synchronous_commit = on',
        }
    finally:
        clean.sql(f"alter role {role} in database {name} reset synchronous_commit")
        clean.sql(f"drop role {role}")


@pytest.mark.parametrize(
    ("statements", "is_unique"),
    [
        ([], False),
        (["create unique index on warehouse (id)"], True),
        (["create unique index on warehouse (id)", "alter table warehouse alter id set not null"], True),
        (
            ["create unique index on warehouse (id) where number > 0", "alter table warehouse alter id set not null"],
            False,
        ),
        (["create unique index on warehouse (id, number)", "alter table warehouse alter id set not null"], False),
        (["create index on warehouse (id)", "alter table warehouse alter id set not null"], False),
        (["alter table warehouse add primary key (id)"], True),
    ],
    ids=str,
)
def test_exactly_once_needs_a_unique_key_of_the_compared_key(
    clean: ReconciledShop, statements: list[str], is_unique: bool
) -> None:
    claim(clean, "exactly-once")
    for statement in statements:
        clean.sql(statement)

    assert ((BROKEN, "unique key") in found(clean)) is not is_unique


def captured(shop: ReconciledShop) -> None:
    """Have the topic's values be Debezium's change events of the ledger."""
    shop.format = {"value": "debezium"}
    shop.describe(hop={"consumer_group": shop.topic}, is_observing=True)


def test_what_keeps_changes_from_a_connector_is_found(clean: ReconciledShop) -> None:
    slot = f"s_{uuid.uuid4().hex}"
    captured(clean)
    assert found(clean) == [(BROKEN, "replication slot"), (RISK, "replica identity")]
    clean.sql("alter table outbox add primary key (id)")
    clean.sql(f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    try:
        assert found(clean) == [(BROKEN, "publication"), (RISK, "active")]
        clean.sql("create publication p for table outbox with (publish = 'insert')")
        assert found(clean) == [(RISK, "active"), (RISK, "publication")]
        clean.sql("alter publication p set (publish = 'insert, update, delete, truncate')")
        assert found(clean) == [(RISK, "active")]
        clean.sql("alter table outbox replica identity nothing")
        assert found(clean) == [(RISK, "active"), (RISK, "replica identity")]
        clean.sql("alter table outbox replica identity default")
        lose(clean)
        assert found(clean) == [(BROKEN, "wal_status")]
    finally:
        clean.sql(f"select pg_drop_replication_slot('{slot}')")
        settle(clean, "alter system reset max_slot_wal_keep_size")


def lose(shop: ReconciledShop) -> None:
    """Have the server remove the log that its slot needs."""
    settle(shop, "alter system set max_slot_wal_keep_size = '1MB'")
    for _ in range(4):
        shop.sql("select pg_logical_emit_message(false, 'x', repeat('x', 1000))")
        shop.sql("select pg_switch_wal()")
    settle(shop, "checkpoint")


def settle(shop: ReconciledShop, statement: str) -> None:
    """Run a statement that no transaction can hold, and have the server read its settings."""
    session = psycopg2.connect(shop.dsn)
    session.autocommit = True
    with session.cursor() as cursor:
        cursor.execute(statement)
        cursor.execute("select pg_reload_conf()")
    session.close()


# The command


def asked(*options: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "shop", *options])


def test_the_command_says_that_nothing_is_too_little(clean: ReconciledShop) -> None:
    result = asked()

    assert (result.exit_code, result.stdout) == (
        0,
        "shop claims outbox→orders at-least-once (not in the file: derived); "
        "orders→warehouse at-least-once (not in the file: derived)\nnothing that it rests on is too little for that\n"
        "no transaction holds keys of shop in doubt\n",
    )
    document = json.loads(asked("--json").stdout)
    assert (document["findings"], document["prepared"], document["open"], document["problems"]) == ([], [], [], [])


def test_the_command_names_each_setting_with_what_to_write_and_the_row_of_what_happens(clean: ReconciledShop) -> None:
    clean.change_topic(unclean_leader_election_enable="true")
    commit_group(clean.bootstrap, clean.topic, clean.topic, 2)

    result = asked()

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[2:7] == [
        "broken: the claim does not hold",
        f"1. topic {clean.topic}: unclean.leader.election.enable: true; should be false",
        "   because a replica that lags may lead: acknowledged records are cut off, and their offsets used again",
        f"   to write: kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name {clean.topic} "
        "--add-config unclean.leader.election.enable=false",
        "   otherwise: row 9 of docs/faults.md, #9-an-unclean-election-cuts-acknowledged-records-off",
    ]
    assert lines[8] == "risk: it holds as long as nothing else fails"
    assert "2 settings to look at. Nothing was changed: makewhole only reports settings." in lines
    findings = json.loads(asked("--json").stdout)["findings"]
    assert [item["severity"] for item in findings] == ["broken", "risk"]
    assert findings[0]["fault"] == "docs/faults.md#9-an-unclean-election-cuts-acknowledged-records-off"


def test_what_is_not_known_is_neither_good_nor_bad(clean: ReconciledShop) -> None:
    clean.send(orders([7]), settings={"enable.idempotence": False})
    commit_group(clean.bootstrap, clean.topic, clean.topic, 6)

    result = asked()

    assert result.exit_code == 3
    assert "unknown: nothing here says whether it holds" in result.stdout.splitlines()


def test_a_connection_that_this_machine_lacks_leaves_out_what_it_leads_to(
    clean: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean.change_topic(unclean_leader_election_enable="true")
    monkeypatch.delenv("AIRFLOW_CONN_DB")

    document = json.loads(asked("--json").stdout)

    assert [item["setting"] for item in document["findings"]] == ["unclean.leader.election.enable"]
    assert [item["point"] for item in document["problems"]] == ["outbox", "warehouse"]
    assert asked().exit_code == 4
