"""Test SASL, TLS and rights against a real broker that has them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from makewhole.kafka import rights
from makewhole.kafka.group_commits import COMMIT_LOG, group_commits
from makewhole.kafka.log.reader import BrokerLog, read_range
from makewhole.kafka.offsets import describe_topic, stable_offsets
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import MakewholeError, PermanentError, TransientError
from makewhole.model.window import PartitionRange
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import free_ports
from tests.integration.kafka.certificates import Authority
from tests.integration.kafka.records import produce
from tests.world.topics import commit_group

pytestmark = pytest.mark.integration

PASSWORD = "correct-horse"
LISTENERS = {"SASL": "SASL_PLAINTEXT", "SASLTLS": "SASL_SSL", "TLS": "SSL", "MTLS": "SSL"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
TOPIC = "guarded"


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A broker with a listener of each kind, a topic of 100 records on it, and who is known to it."""

    server: KafkaServer
    ports: dict[str, int]
    authority: Authority
    untrusted: Authority
    client: tuple[Path, Path]
    topic_id: str

    def connection(self, listener: str, **properties: str) -> KafkaConnection:
        """As Alice, with the right password and trusting the authority, unless `properties` differ."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        named = {"ssl.ca.location": str(self.authority.certificate), "sasl.mechanism": "PLAIN"} | named
        named = {"sasl.username": "alice", "sasl.password": PASSWORD} | named
        named["security.protocol"] = LISTENERS.get(listener, "PLAINTEXT")
        host = named.pop("host", "127.0.0.1")
        return KafkaConnection(
            id="guarded", properties={"bootstrap.servers": f"{host}:{self.ports[listener]}", **named}
        )

    @property
    def range(self) -> PartitionRange:
        return PartitionRange(topic=TOPIC, topic_id=self.topic_id, partition=0, lo=0, hi=100)


@pytest.fixture(scope="module")
def guarded(server_folder: Path) -> Iterator[Guarded]:
    folder = Path(mkdtemp(prefix="guarded-", dir=server_folder))  # a worker may come back to this module
    authority, untrusted = Authority(folder, "authority"), Authority(folder, "untrusted")
    own = free_ports(2)
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    settings = broker_settings(own, ports, authority)
    with KafkaServer(folder / "kafka", ports=own, settings=settings) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result()
        let_alice_read(admin)
        produce(server.bootstrap, TOPIC, 100)
        plain = KafkaConnection(id="plain", properties={"bootstrap.servers": server.bootstrap})
        yield Guarded(
            server=server,
            ports=ports | {"PLAINTEXT": own[0]},
            authority=authority,
            untrusted=untrusted,
            client=authority.sign("client"),
            topic_id=describe_topic(plain, TOPIC).topic_id,
        )


def broker_settings(own: list[int], ports: dict[str, int], authority: Authority) -> dict[str, object]:
    advertised = [f"PLAINTEXT://127.0.0.1:{own[0]}", *(f"{name}://127.0.0.1:{port}" for name, port in ports.items())]
    protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *(f"{name}:{kind}" for name, kind in LISTENERS.items())]
    certificate, key = authority.sign("broker")
    store = certificate.with_suffix(".pem")
    store.write_bytes(key.read_bytes() + certificate.read_bytes())
    modules = "org.apache.kafka.common.security"
    settings: dict[str, object] = {
        "listeners": ",".join([*advertised, f"CONTROLLER://127.0.0.1:{own[1]}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(protocols),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.certificate,
        "listener.name.mtls.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:CN=client",
    }
    for listener in ("sasl", "sasltls"):
        users = f'user_alice="{PASSWORD}" user_bob="{PASSWORD}"'
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = (
            f"{modules}.plain.PlainLoginModule required {users};"
        )
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = (
                f"{modules}.scram.ScramLoginModule required;"
            )
    return settings


def let_alice_read(admin: AdminClient) -> None:
    """Alice may read and describe the topic, not its settings; Bob is known, and may nothing."""
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        user = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for update in admin.alter_user_scram_credentials([user]).values():
            update.result()
    let_alice(admin, TOPIC, AclOperation.READ)


def let_alice(admin: AdminClient, topic: str, right: AclOperation) -> None:
    rule = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*", right, AclPermissionType.ALLOW
    )
    for made in admin.create_acls([rule]).values():
        made.result()


def read(connection: KafkaConnection, wanted: PartitionRange, patience_seconds: float = 5) -> int:
    with BrokerLog(connection, patience_seconds=patience_seconds) as log:
        return sum(batch.num_rows for batch in read_range(log, wanted))


@pytest.mark.parametrize("listener", ["SASL", "SASLTLS"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_with_the_password_reads(guarded: Guarded, listener: str, mechanism: str) -> None:
    connection = guarded.connection(listener, sasl_mechanism=mechanism)
    assert stable_offsets(connection, TOPIC) == {0: 100}
    assert read(connection, guarded.range) == 100


def test_a_trusted_broker_is_read_over_tls(guarded: Guarded) -> None:
    plain_rights = guarded.connection("MTLS", ssl_certificate_location=str(guarded.client[0]))
    connection = KafkaConnection(
        id="m", properties={**plain_rights.properties, "ssl.key.location": str(guarded.client[1])}
    )
    assert read(connection, guarded.range) == 100
    inline = dict(connection.properties) | {"ssl.ca.pem": guarded.authority.certificate.read_text()}
    del inline["ssl.ca.location"]
    assert read(KafkaConnection(id="m", properties=inline), guarded.range) == 100


@pytest.mark.parametrize("listener", ["SASL", "SASLTLS"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_for_good_and_not_shown(guarded: Guarded, listener: str, mechanism: str) -> None:
    connection = guarded.connection(listener, sasl_mechanism=mechanism, sasl_password="battery-staple")
    with pytest.raises(PermanentError) as caught:
        read(connection, guarded.range)
    assert_clear(caught.value, "uthentication failed", "Correct the credentials or the rights")


@pytest.mark.parametrize("listener", ["SASLTLS", "TLS"])
def test_a_broker_whose_certificate_is_not_trusted_is_refused_for_good(guarded: Guarded, listener: str) -> None:
    connection = guarded.connection(listener, ssl_ca_location=str(guarded.untrusted.certificate))
    with pytest.raises(PermanentError) as caught:
        read(connection, guarded.range)
    assert_clear(caught.value, "certificate verify failed", "Correct security.protocol or the certificates")


def test_a_broker_of_another_name_than_its_certificates_is_refused_for_good(guarded: Guarded) -> None:
    with pytest.raises(PermanentError, match="Hostname mismatch, certificate is not valid for 'localhost'"):
        read(guarded.connection("SASLTLS", host="localhost"), guarded.range)


def test_a_client_without_the_certificate_that_the_broker_asks_for_is_refused_for_good(guarded: Guarded) -> None:
    with pytest.raises(PermanentError, match=r"Correct security\.protocol or the certificates"):
        read(guarded.connection("MTLS"), guarded.range)


def test_tls_spoken_to_a_listener_without_it_names_the_protocol_among_what_to_check(guarded: Guarded) -> None:
    given = dict(guarded.connection("PLAINTEXT").properties) | {"security.protocol": "SSL"}
    with pytest.raises(TransientError, match=r"Check .* that security\.protocol fits their listener"):
        read(KafkaConnection(id="m", properties=given), guarded.range, patience_seconds=1)


def test_a_user_without_rights_is_refused_for_good(guarded: Guarded) -> None:
    with pytest.raises(PermanentError) as caught:
        read(guarded.connection("SASL", sasl_username="bob"), guarded.range)
    assert_clear(caught.value, f"topic {TOPIC}", "Correct the credentials or the rights")


def test_without_the_right_to_see_settings_a_hole_stays_unexplained(guarded: Guarded) -> None:
    with BrokerLog(guarded.connection("SASL")) as log:
        assert log.hole_reason(guarded.range, 1, 2) == (
            "no batch holds these offsets, and cleanup.policy may not be read (DescribeConfigs)"
        )
    with BrokerLog(guarded.connection("PLAINTEXT")) as log:
        assert log.hole_reason(guarded.range, 1, 2) == "no batch holds these offsets, and cleanup.policy is delete"


def test_each_right_that_transactions_need_is_asked_for_and_nothing_is_made(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    markers, bob = "markers-of-this-test", guarded.connection("SASL", sasl_username="bob")
    monkeypatch.setattr(rights, "MARKER_TOPIC", markers)
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{guarded.ports['PLAINTEXT']}"})
    topics = {*admin.list_topics(timeout=30).topics}
    write, read = "Write transactional ids replay-…", "Read groups replay-…"
    hidden, make = f"Read topic {markers}, or the topic is not there", f"make topic {markers}, which is not there"
    for granted, missing in (
        (None, {write, read, hidden}),
        ((ResourceType.TRANSACTIONAL_ID, "replay-", AclOperation.WRITE), {read, hidden}),
        ((ResourceType.GROUP, "replay-", AclOperation.READ), {hidden}),
        ((ResourceType.TOPIC, markers, AclOperation.READ), {make}),
        ((ResourceType.TOPIC, markers, AclOperation.CREATE), set()),
    ):
        if granted is not None:
            resource, name, right = granted
            rule = (resource, name, ResourcePatternType.PREFIXED, "User:bob", "*")
            for made in admin.create_acls([AclBinding(*rule, right, AclPermissionType.ALLOW)]).values():
                made.result()
        assert missing_soon(bob, missing) == missing
    plain = guarded.connection("PLAINTEXT")
    assert list(rights.missing_to_write(plain, "replay-shop-0-orders")) == []
    assert {*admin.list_topics(timeout=30).topics} == topics
    assert [known.group_id for known in admin.list_consumer_groups().result(30).valid if "shop" in known.group_id] == []


def missing_soon(connection: KafkaConnection, expected: set[str]) -> set[str]:
    """Return what is missing, as soon as the broker has heard of the rights; at the latest in ten seconds."""
    deadline = time.monotonic() + 10
    while True:
        named = {missing.right for missing in rights.missing_to_write(connection, "replay-shop-0-orders")}
        if named == expected or time.monotonic() > deadline:
            return named


def assert_clear(error: MakewholeError, *parts: str) -> None:
    message = str(error)
    assert all(part in message for part in parts), message
    assert PASSWORD not in message
    assert "battery-staple" not in message


def test_who_may_not_read_the_log_of_commits_is_refused_for_good(guarded: Guarded) -> None:
    bootstrap = f"127.0.0.1:{guarded.ports['PLAINTEXT']}"
    commit_group(bootstrap, "copier", TOPIC, 7)
    alice = guarded.connection("SASL")
    for right in (None, AclOperation.DESCRIBE):
        if right is not None:
            let_alice(AdminClient({"bootstrap.servers": bootstrap}), COMMIT_LOG, right)
        with pytest.raises(PermanentError) as caught:
            group_commits(alice, "copier", TOPIC, patience_seconds=5)
        assert_clear(caught.value, COMMIT_LOG, "Correct the credentials or the rights")
    let_alice(AdminClient({"bootstrap.servers": bootstrap}), COMMIT_LOG, AclOperation.READ)

    deadline = time.monotonic() + 30
    while True:
        try:
            group = group_commits(alice, "copier", TOPIC, patience_seconds=5)
            break
        except PermanentError:  # the right is not there at once
            assert time.monotonic() < deadline

    assert [(commit.partition, commit.lo, commit.hi, commit.is_within) for commit in group.commits] == [
        (0, 0, 7, False)
    ]
