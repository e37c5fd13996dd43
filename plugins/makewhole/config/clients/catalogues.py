"""Read connections to catalogues of Iceberg tables.

The extra has pyiceberg's own properties. `{login}` and `{password}` in one of them stand for these fields of the
connection, so that a secret need not stand in the extra; in an address (`uri`) they are encoded as it asks.
"""

from collections.abc import Mapping
from urllib.parse import quote, urlsplit, urlunsplit

from makewhole.config.clients.client_options import unlisted_iceberg_options
from makewhole.model.connection import IcebergConnection

_USUAL_NAME = "default"
_TYPES = ("sql", "rest", "hive", "glue", "dynamodb", "bigquery", "in-memory")


def read_iceberg(connection_id: str, fields: Mapping[str, object], extra: Mapping[str, object]) -> IcebergConnection:
    """Return the connection that the fields of an Airflow connection describe. `schema` is the name of the catalogue.

    Raises:
        ValueError: something is missing or cannot be understood; its text says what, and never a value.
    """
    used = [name for name in ("host", "port") if fields.get(name)]
    if used:
        raise ValueError(f"has a {' and a '.join(used)}, and the address of a catalogue is `uri` in the extra")
    if any(not isinstance(value, str | int | float | bool) for value in extra.values()):
        raise ValueError("has a value in its extra that is no text, number or boolean")
    if unlisted := unlisted_iceberg_options(extra):
        raise ValueError(f"has options in its extra that are not handed to pyiceberg: {', '.join(unlisted)}")
    properties = {name: _text(name, value, fields) for name, value in extra.items()}
    if properties.get("type") not in _TYPES:
        raise ValueError(f"has no `type` of a catalogue in its extra ({', '.join(_TYPES)})")
    if properties["type"] in ("sql", "rest") and not properties.get("uri"):
        raise ValueError("has no `uri` of the catalogue in its extra")
    if not _is_address(properties.get("uri", "")):
        raise ValueError("has a `uri` in its extra that is no address; special characters in it are percent-encoded")
    if properties["type"] == "sql":
        properties.setdefault("init_catalog_tables", "false")  # nothing is made in it by looking
    return IcebergConnection(id=connection_id, catalog=str(fields.get("schema") or _USUAL_NAME), properties=properties)


def _is_address(uri: str) -> bool:
    try:
        return urlsplit(uri).port != 0
    except ValueError:
        return False


def _text(name: str, value: object, fields: Mapping[str, object]) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    for field in ("login", "password"):
        filled = str(fields.get(field) or "")
        text = text.replace(f"{{{field}}}", quote(filled, safe="") if name == "uri" else filled)
    return text


def server_of_catalogue(connection: IcebergConnection) -> object:
    """Return what two connections have in common that lead to the same tables; none of it is a secret."""
    address = urlsplit(connection.properties.get("uri", ""))
    host = address.netloc.rpartition("@")[2]
    place = urlunsplit((address.scheme, host, address.path, "", ""))
    return [connection.properties.get("type", ""), place, connection.catalog]
