"""Find what describes a connection: in the environment, or in the file that `MAKEWHOLE_CONNECTIONS` names.

The file is for machines that no Airflow hands its connections to, such as those of a Spark cluster. Its form is that of
Airflow's own file of connections in JSON: an object whose names are the ids, and whose values are objects or URIs.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from makewhole.model.errors import ConfigurationError, Problem

FILE_VARIABLE = "MAKEWHOLE_CONNECTIONS"


@dataclass(frozen=True, kw_only=True)
class ConnectionText:
    """The description of a connection, as text or as fields, and the place where it was found; "" where it was not."""

    file: str
    path: str
    described: str | Mapping[str, object] = field(repr=False)


def variable_of(connection_id: str) -> str:
    """Return the environment variable of a connection."""
    return f"AIRFLOW_CONN_{connection_id.upper()}"


def find_connection(connection_id: str) -> ConnectionText:
    """Return the description of a connection: that of the environment, or else that of the file.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    variable = variable_of(connection_id)
    text = os.environ.get(variable, "").strip()
    file = os.environ.get(FILE_VARIABLE, "").strip()
    if text or not file:
        return ConnectionText(file="environment", path=variable, described=text)
    described = _read(file).get(connection_id, "")
    if isinstance(described, str):
        described = described.strip()
    if not described:
        return ConnectionText(file="environment", path=variable, described="")
    if not isinstance(described, str | Mapping):
        _fail(file, connection_id, "is neither a JSON object nor a URI", "Write one of both, as Airflow reads them")
    return ConnectionText(file=file, path=connection_id, described=described)


def _read(file: str) -> Mapping[str, object]:
    try:
        read = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        _fail(file, FILE_VARIABLE, f"cannot be read ({type(error).__name__})", _REMEDY)
    if not isinstance(read, Mapping):
        _fail(file, FILE_VARIABLE, "is not a JSON object", _REMEDY)
    return read


_REMEDY = 'Write it as {"<connection id>": {"conn_type": "...", ...}}, for its owner alone to read'


def _fail(file: str, path: str, found: str, remedy: str) -> NoReturn:
    raise ConfigurationError([Problem(file=file, path=path, found=found, remedy=remedy)]) from None
