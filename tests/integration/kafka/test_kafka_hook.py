import json

import pytest

from makewhole.config.connection_text import variable_of
from makewhole.orchestration.kafka_hook import KafkaHook
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import free_ports

pytestmark = pytest.mark.integration


def described(bootstrap: str, **extra: str) -> str:
    return json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": bootstrap, **extra}})


def test_a_connection_whose_brokers_answer_is_good(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable_of("log"), described(kafka.bootstrap))

    assert KafkaHook("log").test_connection() == (True, "1 broker answers")


def test_a_connection_says_why_no_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv(variable_of("log"), described(f"127.0.0.1:{port}"))

    is_good, reason = KafkaHook("log").test_connection()

    assert not is_good
    assert f"127.0.0.1:{port}" in reason


def test_a_connection_with_a_setting_that_cannot_be_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable_of("log"), described("127.0.0.1:9", **{"security.protocol": "PIGEON"}))

    is_good, reason = KafkaHook("log").test_connection()

    assert not is_good
    assert "security.protocol" in reason
