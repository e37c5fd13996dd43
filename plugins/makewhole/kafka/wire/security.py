"""Translate librdkafka's properties into the arguments of aiokafka's connection."""

import ssl
from collections.abc import Mapping
from typing import Any

from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, Problem

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_REMEDIES = {
    "ssl.keystore.location": "Give PEM files as ssl.certificate.location and ssl.key.location",
    "ssl.certificate.pem": "Give a PEM file as ssl.certificate.location",
    "ssl.key.pem": "Give a PEM file as ssl.key.location",
}


def connection_arguments(connection: KafkaConnection) -> dict[str, Any]:
    """Return the arguments for `aiokafka.conn.create_conn`.

    Raises:
        ConfigurationError: names every property that is missing or not supported; never their values.
    """
    properties = connection.properties
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "PLAIN")).upper()
    problems = _problems(connection, protocol, mechanism)
    if problems:
        raise ConfigurationError(problems)
    arguments: dict[str, Any] = {
        "client_id": properties.get("client.id", "makewhole"),
        "security_protocol": protocol,
    }
    if protocol.endswith("SSL"):
        arguments["ssl_context"] = _ssl_context(connection)
    if protocol.startswith("SASL"):
        arguments["sasl_mechanism"] = mechanism
        arguments["sasl_plain_username"] = properties["sasl.username"]
        arguments["sasl_plain_password"] = properties["sasl.password"]
    return arguments


def _problems(connection: KafkaConnection, protocol: str, mechanism: str) -> list[Problem]:
    properties, faults = connection.properties, []
    if not properties.get("bootstrap.servers"):
        faults.append(("bootstrap.servers", "is not set", "Give host:port of at least one broker"))
    if protocol not in _PROTOCOLS:
        faults.append(("security.protocol", "is not supported", f"Use one of {', '.join(_PROTOCOLS)}"))
    if protocol.startswith("SASL"):
        if mechanism not in _MECHANISMS:
            faults.append(("sasl.mechanism", "is not supported", f"Use one of {', '.join(_MECHANISMS)}"))
        missing = [name for name in ("sasl.username", "sasl.password") if not properties.get(name)]
        faults += [(name, "is not set", "Set it in the connection") for name in missing]
    if protocol.endswith("SSL"):
        faults += [(name, "is not supported", remedy) for name, remedy in _REMEDIES.items() if properties.get(name)]
    where = f"connection {connection.id}"
    return [Problem(file=where, path=path, found=what, remedy=remedy) for path, what, remedy in faults]


def _ssl_context(connection: KafkaConnection) -> ssl.SSLContext:
    properties: Mapping[str, str] = connection.properties
    try:
        authorities, file = properties.get("ssl.ca.pem"), properties.get("ssl.ca.location")
        context = ssl.create_default_context(cafile=file, cadata=authorities)
        if certificate := properties.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, properties.get("ssl.key.location"), properties.get("ssl.key.password"))
    except (OSError, ssl.SSLError) as error:
        problem = Problem(
            file=f"connection {connection.id}",
            path="ssl.ca.location, ssl.ca.pem, ssl.certificate.location, ssl.key.location",
            found="a file cannot be read, or is not what it should be",
            remedy="Give PEM files that this process may read",
        )
        raise ConfigurationError([problem]) from error
    if properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
