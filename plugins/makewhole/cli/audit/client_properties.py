"""Read a Kafka client's properties file: librdkafka's names, or those of Java's own tools.

Messages name properties and files, never values: any of them may be a secret.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from makewhole.model.errors import ConfigurationError, Problem

_JAAS = "sasl.jaas.config"
_JAAS_FIELD = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,/]+)(:\d{1,5})?")
_PEM = {
    "ssl.truststore": {"location": "ssl.ca.location"},
    "ssl.keystore": {"location": "ssl.certificate.location"},
}


def client_properties(bootstrap: str | None, config: Path | None, given: Iterable[str]) -> dict[str, str]:
    """Merge the options; later ones win: the file, single properties, then the bootstrap address.

    Raises:
        ConfigurationError: the file cannot be read, or something in it or in the options cannot be understood.
    """
    properties = {} if config is None else _of_file(config)
    for text in given:
        properties |= _pair(text, "--property", "option")
    if bootstrap is not None:
        properties["bootstrap.servers"] = bootstrap
    if not properties.get("bootstrap.servers"):
        raise _problem("options", "bootstrap", "no broker is named", "Give --bootstrap host:port")
    if not all(_ADDRESS.fullmatch(address.strip()) for address in properties["bootstrap.servers"].split(",")):
        raise _problem("options", "bootstrap", "is not host:port", "Write host:port, with commas between several")
    return _as_librdkafka(properties)


def _of_file(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        remedy = "Give a file of name=value lines that this user may read"
        raise _problem(str(path), "", f"cannot be read: {type(error).__name__}", remedy) from error
    properties: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and line.lstrip()[0] not in "#!":
            properties |= _pair(line, str(path), f"line {number}")
    return properties


def _pair(text: str, file: str, path: str) -> dict[str, str]:
    name, equals, value = text.strip().partition("=")
    if not equals or not name.strip():
        raise _problem(file, path, "is no name=value", "Write name=value, for instance security.protocol=SSL")
    return {name.strip(): value.strip()}


def _as_librdkafka(properties: dict[str, str]) -> dict[str, str]:
    """Translate Java's names to librdkafka's, where there is an equivalent."""
    translated = dict(properties)
    for name, value in _JAAS_FIELD.findall(properties.get(_JAAS, "")):
        translated.setdefault(f"sasl.{name}", re.sub(r"\\(.)", r"\1", value))
    for store, names in _PEM.items():
        if f"{store}.location" not in properties:
            continue
        if properties.get(f"{store}.type", "JKS").upper() != "PEM":
            remedy = f"Give {names['location']} with a PEM file (keytool and openssl convert it)"
            raise _problem("options", f"{store}.location", "is no PEM file, as far as its type says", remedy)
        translated.setdefault(names["location"], properties[f"{store}.location"])
    if "ssl.key.password" not in properties and "ssl.keystore.password" in properties:
        translated["ssl.key.password"] = properties["ssl.keystore.password"]
    return translated


def _problem(file: str, path: str, found: str, remedy: str) -> ConfigurationError:
    return ConfigurationError([Problem(file=file, path=path, found=found, remedy=remedy)])
