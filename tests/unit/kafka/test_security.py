"""Test the translation of librdkafka's properties into connection arguments."""

import ssl

import pytest

from makewhole.kafka.wire.security import connection_arguments
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit


def connection(**properties: str) -> KafkaConnection:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaConnection(id="main", properties={"bootstrap.servers": "h:9092", **named})


def test_without_security_nothing_but_the_protocol_is_passed() -> None:
    assert connection_arguments(connection()) == {"client_id": "makewhole", "security_protocol": "PLAINTEXT"}


def test_sasl_over_tls_is_mapped() -> None:
    given = connection(
        security_protocol="sasl_ssl", sasl_mechanism="SCRAM-SHA-512", sasl_username="u", sasl_password="secret"
    )
    arguments = connection_arguments(given)
    context = arguments.pop("ssl_context")
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert arguments == {
        "client_id": "makewhole",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "secret",
    }


def test_every_missing_property_is_named_and_no_value_is_shown() -> None:
    given = connection(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI", sasl_password="secret")
    with pytest.raises(ConfigurationError) as caught:
        connection_arguments(given)
    assert [(problem.file, problem.path) for problem in caught.value.problems] == [
        ("connection main", "sasl.mechanism"),
        ("connection main", "sasl.username"),
    ]
    assert "secret" not in str(caught.value)


def test_a_key_store_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(ConfigurationError, match=r"ssl\.keystore\.location: is not supported\. Give PEM files as ssl"):
        connection_arguments(connection(security_protocol="SSL", ssl_keystore_location="/k.p12"))


def test_a_certificate_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"ssl\.ca\.location.*a file cannot be read"):
        connection_arguments(connection(security_protocol="SSL", ssl_ca_location="/nowhere.pem"))
