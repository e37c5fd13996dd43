"""Export Airflow's connections to the environment, where every part of makewhole reads them."""

import json
import os
from contextlib import suppress
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from makewhole.config.connection_text import variable_of
from makewhole.file_system import connection_of
from makewhole.model.pipeline import Pipeline
from makewhole.signing.key_files import (
    KEY_CONNECTION,
    KEY_VARIABLE,
    read_signing_key,
    signing_key_from_environment,
)
from makewhole.signing.keys import SigningKey


def export_connections(pipeline: Pipeline) -> None:
    """Put every connection that the pipeline names, and that of the storage, into this process's environment, as
    `AIRFLOW_CONN_<ID>`.

    Variables that exist are left as they are. Only the task's process and the Spark driver that it starts see them. One
    that Airflow does not have is left out: what reads it then names it, and what to write.
    """
    named = {name for point in pipeline.points.values() for name in point.connections}
    named |= {name for publish in pipeline.publish if (name := connection_of(publish.path or "")) is not None}
    for name in sorted(named):
        export(name)
    export_storage_connection()


def export_storage_connection() -> None:
    """Put the connection of the storage into this process's environment, where the storage has one."""
    name = connection_of(os.environ.get("MAKEWHOLE_STORAGE", ""))
    if name is not None:
        export(name)


def export(name: str) -> None:
    """Put a connection into this process's environment; one that Airflow does not have is left out."""
    variable = variable_of(name)
    if variable not in os.environ:
        with suppress(AirflowNotFoundException):
            os.environ[variable] = json.dumps(described(name))


def signing_key() -> SigningKey:
    """Return the key that signs certificates: of the environment, or the password of the connection for it.

    It stays in this process: other than connections it is not exported, so that no Spark job has it from here.

    Raises:
        ConfigurationError: there is none, or it is no key.
    """
    if not os.environ.get(KEY_VARIABLE, "").strip():
        try:
            text = BaseHook.get_connection(KEY_CONNECTION).password
        except AirflowNotFoundException:
            text = None
        if text:
            return read_signing_key(text, "Airflow connection", KEY_CONNECTION)
    return signing_key_from_environment()


def described(name: str) -> dict[str, Any]:
    """Return the fields that an Airflow connection has, by their names."""
    connection = BaseHook.get_connection(name)
    fields = {
        "conn_type": connection.conn_type,
        "host": connection.host,
        "port": connection.port,
        "login": connection.login,
        "password": connection.password,
        "schema": connection.schema,
        "extra": connection.extra_dejson,
    }
    return {key: value for key, value in fields.items() if value not in (None, "")}
