"""Test an audit by a user who may not see everything: it says what it does not know, and accuses no producer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import free_ports

pytestmark = [pytest.mark.integration, pytest.mark.extended]

PASSWORD = "correct-horse"
TOPIC, TRANSACTIONS = "guarded", "__transaction_state"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_MAKEWHOLE = Path(sys.executable).parent / "makewhole"


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A broker where Alice may read a topic, and whoever comes without a name may all."""

    folder: Path
    port: int
    admin: AdminClient

    def audit(self, user: str, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
        """As that user, by a properties file of Java's tools."""
        config = self.folder / f"{user}.properties"
        jaas = f'{_MODULE} required username="{user}" password="{password}";'
        config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
        command = [str(_MAKEWHOLE), "audit", TOPIC, "--bootstrap", f"127.0.0.1:{self.port}", "--config", str(config)]
        return subprocess.run(
            [*command, "--json"], capture_output=True, text=True, timeout=90, env={**os.environ, "COLUMNS": "100"}
        )

    def allow(self, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """One more right for Alice."""
        pattern = ResourcePatternType.LITERAL
        rule = AclBinding(kind, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)
        for made in self.admin.create_acls([rule]).values():
            made.result()


@pytest.fixture(scope="module")
def guarded(server_folder: Path) -> Iterator[Guarded]:
    own, [port] = free_ports(2), free_ports(1)
    listeners = f"PLAINTEXT://127.0.0.1:{own[0]},SASL://127.0.0.1:{port}"
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in ("alice", "bob"))
    settings = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{own[1]}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{_MODULE} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with KafkaServer(server_folder / "kafka-rights", ports=own, settings=settings) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result()
        guarded = Guarded(folder=server_folder, port=port, admin=admin)
        guarded.allow(ResourceType.TOPIC, TOPIC, AclOperation.READ)
        producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "hers"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for _ in range(5):
            producer.produce(TOPIC, b"not ended")
        producer.flush(30)
        yield guarded


def codes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    document: dict[str, Any] = json.loads(done.stdout)
    return {finding["code"]: finding["level"] for finding in document["findings"]}


def test_what_may_not_be_asked_is_not_known_and_no_producer_is_accused(guarded: Guarded) -> None:
    done = guarded.audit("alice")
    assert done.returncode == 3, done.stderr
    assert codes(done)["coordinators_not_asked"] == "not_known"
    assert "hanging_transaction" not in codes(done)
    document = json.loads(done.stdout)
    assert document["settings"] == {}
    assert "DescribeConfigs" in document["settings_refusal"] or "rights" in document["settings_refusal"]
    assert document["partitions"][0]["tail"]["records"] == 5
    [running] = document["transactions"]["open"]
    assert (running["records"], running["is_hanging"], running["state"]) == (5, False, None)


def test_a_transactional_id_that_an_authorizer_hides_makes_no_transaction_hang(guarded: Guarded) -> None:
    guarded.allow(ResourceType.TOPIC, TRANSACTIONS, AclOperation.DESCRIBE)
    guarded.allow(ResourceType.TOPIC, TOPIC, AclOperation.DESCRIBE_CONFIGS)
    done = guarded.audit("alice")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    [running] = document["transactions"]["open"]
    assert (running["transactional_id"], running["is_hanging"]) == (None, False)
    assert document["settings"]["min.insync.replicas"]["value"] == "1"
    guarded.allow(ResourceType.TRANSACTIONAL_ID, "hers", AclOperation.DESCRIBE)
    [running] = json.loads(guarded.audit("alice").stdout)["transactions"]["open"]
    assert (running["transactional_id"], running["state"]) == ("hers", "Ongoing")


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong-staple"), ("bob", PASSWORD)])
def test_a_refusal_is_reported_without_the_password(guarded: Guarded, user: str, password: str) -> None:
    done = guarded.audit(user, password)
    assert done.returncode == 4
    assert password not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "could not: " in done.stderr
