"""Test that client properties files are read as people write them."""

from pathlib import Path

import pytest

from makewhole.cli.audit.client_properties import client_properties
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit


def test_later_ones_win_and_comments_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\n! theirs\n\nbootstrap.servers = a:1\nsecurity.protocol=SSL\nclient.id = x=y\n")
    properties = client_properties("b:2,[::1]:9092,c", file, ["security.protocol=PLAINTEXT"])
    assert properties == {
        "bootstrap.servers": "b:2,[::1]:9092,c",
        "security.protocol": "PLAINTEXT",
        "client.id": "x=y",
    }
    assert client_properties(None, file, [])["bootstrap.servers"] == "a:1"


def test_a_file_of_java_s_own_tools_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "admin.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="alice" \\\n  password="s\\"ecret";\n'
        "ssl.truststore.type=PEM\nssl.truststore.location=/etc/ca.pem\n"
    )
    properties = client_properties("a:1", file, [])
    assert (properties["sasl.username"], properties["sasl.password"]) == ("alice", 's"ecret')
    assert properties["ssl.ca.location"] == "/etc/ca.pem"


@pytest.mark.parametrize("bootstrap", ["a b:1", "http://a:1", "a:b", "a:123456", ",", "a:1,,b:2"])
def test_what_is_no_address_is_refused_before_it_is_tried(bootstrap: str) -> None:
    with pytest.raises(ConfigurationError, match="is not host:port"):
        client_properties(bootstrap, None, [])


def test_no_broker_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Give --bootstrap host:port"):
        client_properties(None, None, ["client.id=x"])


def test_messages_name_places_and_never_values(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=x\nhunter2\n")
    with pytest.raises(ConfigurationError) as caught:
        client_properties("a:1", file, [])
    assert str(caught.value) == (
        f"{file}: line 2: is no name=value. Write name=value, for instance security.protocol=SSL"
    )
    with pytest.raises(ConfigurationError, match="cannot be read: FileNotFoundError"):
        client_properties("a:1", tmp_path / "none", [])
    with pytest.raises(ConfigurationError, match="is no PEM file"):
        client_properties("a:1", None, ["ssl.truststore.location=/x.jks"])
