"""Read connections in Airflow's own form: the environment variable `AIRFLOW_CONN_<ID>`, the file of
`MAKEWHOLE_CONNECTIONS`, or the fields of a connection.

Messages name the place and the remedy, never a value: any of them may be a secret.
"""

import json
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from makewhole.config.clients.catalogues import read_iceberg
from makewhole.config.clients.client_options import (
    KAFKA_OPTIONS,
    LIBPQ_PARAMETERS,
    names_engine,
    unlisted_kafka_options,
)
from makewhole.config.connection_text import FILE_VARIABLE, find_connection
from makewhole.config.other_kinds import ReadConnection, installed_kind
from makewhole.model.connection import (
    Connection,
    FolderConnection,
    HdfsConnection,
    KafkaConnection,
    ObjectStoreConnection,
    PostgresConnection,
    RegistryConnection,
)
from makewhole.model.errors import ConfigurationError, Problem

_POSTGRES_EXAMPLE = (
    '{"conn_type": "postgres", "host": "...", "port": 5432, "login": "...", "password": "...", "schema": "<database>"}'
)
_KAFKA_EXAMPLE = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "<host:port>"}}'
_REGISTRY_EXAMPLE = (
    '{"conn_type": "http", "host": "...", "port": 8081, "login": "...", "password": "...", "schema": "https", '
    '"extra": {"path": "/...", "ca_file": "..."}}'
)
_REGISTRY_PARAMETERS = ("ca_file", "path")
_AWS_EXAMPLE = (
    '{"conn_type": "aws", "login": "<access key>", "password": "<its secret>", "extra": {"region_name": "...", '
    '"endpoint_url": "https://..."}}'
)
_AWS_PARAMETERS = {
    "aws_session_token": "session_token",
    "endpoint_url": "endpoint_url",
    "external_id": "external_id",
    "region_name": "region",
    "role_arn": "role_arn",
}
"""The fields that the extra of a connection to an object store may have, as Airflow names it, and as pyarrow does."""
_HDFS_EXAMPLE = '{"conn_type": "hdfs", "host": "<NameNode>", "port": 8020}'
_FOLDER_EXAMPLE = '{"conn_type": "fs", "extra": {"path": "/<folder>"}}'
_OTHERS: Mapping[str, ReadConnection] = {"iceberg": read_iceberg}
"""The readers of connections of other types that makewhole comes with."""
_PORT_DIGITS = 5
_FIELDS = ("conn_type", "host", "port", "login", "password", "schema", "extra", "description")


def from_environment(connection_id: str) -> Connection:
    """Return the connection in `AIRFLOW_CONN_<ID>`, which holds JSON or a URI, as Airflow reads it; or else that of the
    file of `MAKEWHOLE_CONNECTIONS`.

    Raises:
        ConfigurationError: it is in neither, or cannot be understood.
    """
    fields, place = _find_fields(connection_id, f"{_POSTGRES_EXAMPLE} or {_KAFKA_EXAMPLE}")
    return _build(connection_id, fields, place)


def fields_of(connection_id: str) -> Mapping[str, object]:
    """Return the fields of a connection of any type, found as `from_environment` does.

    Raises:
        ConfigurationError: it is in neither place, or cannot be read.
    """
    return _find_fields(connection_id, '{"conn_type": "..."}')[0]


def object_store(connection_id: str) -> ObjectStoreConnection:
    """Return the connection to an object store (conn_type `aws`), found as `from_environment` does.

    Raises:
        ConfigurationError: it is not there or cannot be understood.
    """
    fields, place = _find_fields(connection_id, _AWS_EXAMPLE)
    if str(fields.get("conn_type") or "").lower() != "aws":
        place.fail("is no connection to an object store", f"Write it as {_AWS_EXAMPLE}")
    return _object_store(connection_id, fields, _extra(fields.get("extra"), place), place)


def hdfs(connection_id: str) -> HdfsConnection:
    """Return the connection to HDFS (conn_type `hdfs`), found as `from_environment` does.

    Raises:
        ConfigurationError: it is not there or cannot be understood.
    """
    fields, place = _find_fields(connection_id, _HDFS_EXAMPLE)
    if str(fields.get("conn_type") or "").lower() != "hdfs":
        place.fail("is no connection to HDFS", f"Write it as {_HDFS_EXAMPLE}")
    return _hdfs(connection_id, fields, _extra(fields.get("extra"), place), place)


def _object_store(
    connection_id: str, fields: Mapping[str, object], extra: Mapping[str, object], place: "_ConnectionPlace"
) -> ObjectStoreConnection:
    if unknown := sorted(set(extra) - set(_AWS_PARAMETERS)):
        place.fail(
            f"has keys in its extra that are not used: {', '.join(unknown)}", f"Allowed: {', '.join(_AWS_PARAMETERS)}"
        )
    if bool(fields.get("login")) is not bool(fields.get("password")):
        place.fail(
            "has a login or a password, and not both",
            "Write the access key as login and its secret as password; or neither, for the SDK's own chain",
        )
    return ObjectStoreConnection(
        id=connection_id,
        access_key=_text(fields.get("login")),
        secret_key=_text(fields.get("password")),
        settings={_AWS_PARAMETERS[name]: _word(name, value, place) for name, value in extra.items()},
    )


def _text(value: object) -> str | None:
    return str(value) if value else None


def _find_fields(connection_id: str, example: str) -> tuple[Mapping[str, object], "_ConnectionPlace"]:
    """Return the fields of a connection, and their place; `example` says what to write where there is none."""
    text = find_connection(connection_id)
    place = _ConnectionPlace(file=text.file, path=text.path)
    if not text.described:
        place.fail(
            "is not set",
            f"Add a connection {connection_id} to Airflow (`airflow connections add`), or set it to {example}, or to "
            f"Airflow's URI form; or write it into the file of {FILE_VARIABLE}",
        )
    if not isinstance(text.described, str):
        return _known_fields(text.described, place), place
    is_json = text.described.startswith("{")
    return (_from_json if is_json else _from_uri)(text.described, place), place


def from_airflow_fields(
    connection_id: str,
    conn_type: str | None,
    host: str | None = None,
    port: int | str | None = None,
    login: str | None = None,
    password: str | None = None,
    schema: str | None = None,
    extra: str | Mapping[str, object] | None = None,
) -> Connection:
    """Return the connection that the fields of an Airflow connection describe; `extra` is JSON or already read.

    Raises:
        ConfigurationError: a field is missing or cannot be understood.
    """
    fields = {
        "conn_type": conn_type,
        "host": host,
        "port": port,
        "login": login,
        "password": password,
        "schema": schema,
        "extra": extra,
    }
    return _build(connection_id, fields, _ConnectionPlace(file="Airflow connection", path=connection_id))


class _ConnectionPlace:
    """The place where a connection is described, which a problem with it names."""

    def __init__(self, *, file: str, path: str) -> None:
        self.file = file
        self.path = path

    def fail(self, found: str, remedy: str) -> NoReturn:
        """Raise one problem. `from None`, since what was parsed is part of the original's message."""
        raise ConfigurationError([Problem(file=self.file, path=self.path, found=found, remedy=remedy)]) from None


def _from_json(text: str, place: _ConnectionPlace) -> Mapping[str, object]:
    try:
        fields = json.loads(text)
    except ValueError:
        place.fail("begins like JSON and is none", "Check quotes, commas and braces")
    return _known_fields(fields, place)


def _known_fields(fields: Mapping[str, object], place: _ConnectionPlace) -> Mapping[str, object]:
    unknown = sorted(set(fields) - set(_FIELDS))
    if unknown:
        place.fail(f"has unknown keys: {', '.join(unknown)}", f"Allowed: {', '.join(sorted(_FIELDS))}")
    return dict(fields)


def _from_uri(text: str, place: _ConnectionPlace) -> Mapping[str, object]:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        place.fail("is not a URI", "Percent-encode special characters in it, or write JSON instead")
    if not parts.scheme:
        place.fail("is neither JSON nor a URI", f"Set it to {_POSTGRES_EXAMPLE} or {_KAFKA_EXAMPLE}")
    extra: dict[str, object] = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "__extra__" in extra:
        extra = dict(_extra(str(extra["__extra__"]), place))
    return {
        "conn_type": parts.scheme,
        "host": unquote(parts.hostname) if parts.hostname else None,
        "port": port,
        "login": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "schema": unquote(parts.path.removeprefix("/")) or None,
        "extra": extra,
    }


def _build(connection_id: str, fields: Mapping[str, object], place: _ConnectionPlace) -> Connection:
    kind = str(fields.get("conn_type") or "").lower()
    extra = _extra(fields.get("extra"), place)
    if kind == "kafka":
        return _kafka(connection_id, extra, place)
    if kind in ("http", "https"):
        return _registry(connection_id, kind, fields, extra, place)
    if kind in ("postgres", "postgresql"):
        return PostgresConnection(id=connection_id, dsn=_dsn(fields, extra, place))
    if kind == "aws":
        return _object_store(connection_id, fields, extra, place)
    if kind == "hdfs":
        return _hdfs(connection_id, fields, extra, place)
    if kind == "fs":
        return _folder(connection_id, extra, place)
    other = None if kind in _OTHERS else installed_kind(kind)
    if other is None and kind not in _OTHERS:
        found = "has a conn_type that makewhole does not read" if kind else "has no conn_type"
        place.fail(found, "Use kafka, postgres, http for a schema registry, iceberg, or fs, hdfs or aws for files")
    read = _OTHERS[kind] if other is None else other.read_connection
    try:
        return read(connection_id, fields, extra)
    except ValueError as error:
        place.fail(str(error), f"Write it as the kind {kind} asks for")


def _extra(extra: object, place: _ConnectionPlace) -> Mapping[str, object]:
    """Return the mapping that `extra` holds, as JSON text or as it is."""
    if extra is None or extra == "":
        return {}
    try:
        read = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        read = None
    if not isinstance(read, Mapping):
        place.fail("has an extra that is not a JSON object", 'Write it as {"name": "value"}')
    return {str(name): value for name, value in read.items()}


def _kafka(connection_id: str, extra: Mapping[str, object], place: _ConnectionPlace) -> KafkaConnection:
    if "partitioner" in extra:
        place.fail(
            "has a partitioner in its extra, and each topic has its own",
            "Take it out, and write 'partitioner: murmur2', 'crc32' or 'random' on the topic points of the pipeline "
            "file (murmur2_random is murmur2, consistent_random is crc32)",
        )
    if not extra.get("bootstrap.servers"):
        place.fail("has no bootstrap.servers in its extra", f"Write it as {_KAFKA_EXAMPLE}")
    words = {name: _word(name, value, place) for name, value in extra.items()}
    if unlisted := unlisted_kafka_options(extra):
        place.fail(
            f"has options in its extra that are not handed to a client: {', '.join(unlisted)}",
            "Take them out: makewhole/config/clients/client_options.py lists what a connection may set, and "
            "docs/security.md says why",
        )
    return KafkaConnection(
        id=connection_id, properties={name: word for name, word in words.items() if name in KAFKA_OPTIONS}
    )


def _registry(
    connection_id: str,
    kind: str,
    fields: Mapping[str, object],
    extra: Mapping[str, object],
    place: _ConnectionPlace,
) -> RegistryConnection:
    """Build the address of a schema registry: its scheme is in `schema`, else the type; `path` is in the extra."""
    if not fields.get("host"):
        place.fail("has no host", f"Write it as {_REGISTRY_EXAMPLE}")
    if unknown := sorted(set(extra) - set(_REGISTRY_PARAMETERS)):
        place.fail(
            f"has keys in its extra that are not used: {', '.join(unknown)}",
            f"Allowed: {', '.join(_REGISTRY_PARAMETERS)}",
        )
    scheme, is_scheme_in_host, host = str(fields["host"]).rpartition("://")
    scheme = scheme if is_scheme_in_host else str(fields.get("schema") or kind)
    if scheme not in ("http", "https") or "@" in host or "/" in host.rstrip("/"):
        place.fail("is no address of a schema registry", f"Write it as {_REGISTRY_EXAMPLE}")
    port = f":{_port(fields['port'], place)}" if fields.get("port") else ""
    path = _word("path", extra.get("path", ""), place).strip("/")
    ca_file = _word("ca_file", extra["ca_file"], place) if "ca_file" in extra else None
    return RegistryConnection(
        id=connection_id,
        url=f"{scheme}://{host.rstrip('/')}{port}" + (f"/{path}" if path else ""),
        login=_text(fields.get("login")),
        password=_text(fields.get("password")),
        ca_file=ca_file,
    )


def _hdfs(
    connection_id: str, fields: Mapping[str, object], extra: Mapping[str, object], place: _ConnectionPlace
) -> HdfsConnection:
    """Return the address of a NameNode or, without a port, of a name service; the extra has Hadoop's properties."""
    host = str(fields.get("host") or "").removeprefix("hdfs://").rstrip("/")
    if not host or "/" in host or "@" in host:
        place.fail("has no host, or one that is none", f"Write it as {_HDFS_EXAMPLE}")
    if fields.get("login") or fields.get("password"):
        place.fail(
            "has a login or a password, which HDFS does not ask for",
            "Take them out: the user is that of the process, or that of HADOOP_USER_NAME",
        )
    port = f":{_port(fields['port'], place)}" if fields.get("port") else ""
    properties = {name: _word(name, value, place) for name, value in extra.items()}
    return HdfsConnection(id=connection_id, address=f"{host}{port}", properties=properties)


def _folder(connection_id: str, extra: Mapping[str, object], place: _ConnectionPlace) -> FolderConnection:
    if set(extra) != {"path"} or not str(extra["path"]).startswith("/"):
        place.fail("has no absolute path in its extra, or more than that", f"Write it as {_FOLDER_EXAMPLE}")
    return FolderConnection(id=connection_id, path=str(extra["path"]))


def _dsn(fields: Mapping[str, object], extra: Mapping[str, object], place: _ConnectionPlace) -> str:
    """Build a libpq URI. A host that is a directory (a Unix socket) is percent-encoded, as libpq asks."""
    missing = [name for name in ("host", "schema") if not fields.get(name)]
    if missing:
        place.fail(f"has no {' and no '.join(missing)}", f"Write it as {_POSTGRES_EXAMPLE}")
    unknown = sorted(set(extra) - set(LIBPQ_PARAMETERS))
    if unknown:
        place.fail(
            f"has keys in its extra that are not used: {', '.join(unknown)}", f"Allowed: {', '.join(LIBPQ_PARAMETERS)}"
        )
    if names_engine(extra):
        place.fail("has an sslkey that names an engine of OpenSSL, which is code", "Name the file of the key")
    login = quote(str(fields["login"]), safe="") if fields.get("login") else ""
    password = f":{quote(str(fields['password']), safe='')}" if fields.get("password") else ""
    host = str(fields["host"])
    place_of_server = f"[{host}]" if ":" in host else quote(host, safe="")
    port = f":{_port(fields['port'], place)}" if fields.get("port") else ""
    query = urlencode({name: _word(name, value, place) for name, value in extra.items()}, quote_via=quote)
    user = f"{login}{password}@" if login or password else ""
    database = quote(str(fields["schema"]), safe="")
    return f"postgresql://{user}{place_of_server}{port}/{database}" + (f"?{query}" if query else "")


def _port(port: object, place: _ConnectionPlace) -> int:
    text = str(port)
    if not text.isascii() or not text.isdigit() or len(text) > _PORT_DIGITS or not 0 < int(text) < 65_536:
        place.fail("has a port that is not a number from 1 to 65535", f"Write it as {_POSTGRES_EXAMPLE}")
    return int(text)


def _word(name: str, value: object, place: _ConnectionPlace) -> str:
    """Return a setting as text, booleans in lower case as librdkafka and libpq write them."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        place.fail(f"has a value in its extra that is no text, number or boolean: {name}", "Write one value in quotes")
    return str(value)
