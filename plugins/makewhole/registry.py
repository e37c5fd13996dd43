"""Ask a schema registry for schemas, by the API of Confluent's, which others speak too.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from makewhole.model.connection import RegistryConnection
from makewhole.model.errors import ConfigurationError, Problem, TransientError

_SECONDS = 20.0
_NOT_FOUND, _REFUSED, _BUSY, _BROKEN = 404, (401, 403), 429, 500


class SchemaNotFoundError(LookupError):
    """The registry has no such schema."""


class Registry:
    """A registry. Every question is a request of its own."""

    def __init__(self, connection: RegistryConnection) -> None:
        self._connection = connection

    def schema(self, name: str, form: str = "") -> Mapping[str, Any]:
        """Return a schema as it is registered: `ids/7`, or `guids/…`. `form`: how its text is written.

        With `schema` (its text), `schemaType` (none: AVRO) and `references`: the schemas that it uses, with their
        texts.

        Raises:
            SchemaNotFoundError: there is none.
            TransientError: the registry does not answer.
            ConfigurationError: it does not let this user in.
        """
        return self._with_references(self._get(f"schemas/{name}", form), form)

    def newest(self, subject: str, form: str = "") -> Mapping[str, Any]:
        """Return the newest schema of a subject, with its `id`. Raises as `schema`."""
        return self._with_references(self._get(f"subjects/{quote(subject, safe='')}/versions/latest", form), form)

    def _with_references(self, schema: Mapping[str, Any], form: str) -> Mapping[str, Any]:
        used = []
        for reference in schema.get("references") or ():
            path = f"subjects/{quote(reference['subject'], safe='')}/versions/{int(reference['version'])}"
            used.append({**self._with_references(self._get(path, form), form), "name": reference["name"]})
        return {**schema, "references": used}

    def _get(self, path: str, form: str) -> Mapping[str, Any]:
        import httpx  # a third of a second, in every process that reads a topic

        connection = self._connection
        login = (connection.login, connection.password or "") if connection.login else None
        query = {"format": form} if form else {}
        try:
            trusted = ssl.create_default_context(cafile=connection.ca_file) if connection.ca_file else True
            url = f"{connection.url}/{path}"
            answer = httpx.get(url, params=query, auth=login, timeout=_SECONDS, verify=trusted)
        except httpx.InvalidURL:
            raise self._wrong("is no address of a schema registry", "Correct its host, port and path") from None
        except (httpx.TransportError, OSError) as error:
            raise self._silent(type(error).__name__) from None  # not chained: the URL may name what it should not
        if answer.status_code == _NOT_FOUND:
            raise SchemaNotFoundError(path)
        if answer.status_code in _REFUSED:
            found = f"is refused by the schema registry (status {answer.status_code})"
            raise self._wrong(found, "Give it a login and a password that may read schemas")
        if answer.status_code == _BUSY or answer.status_code >= _BROKEN:
            raise self._silent(f"status {answer.status_code}")
        schema = _json(answer.content)
        if not answer.is_success or not isinstance(schema, Mapping) or not isinstance(schema.get("schema"), str):
            raise self._wrong(
                f"leads to something that does not answer as a schema registry does (status {answer.status_code})",
                "Name the path of the registry's API in its extra, as `path`: /apis/ccompat/v7 for Apicurio's",
            )
        return schema

    def _silent(self, what: str) -> TransientError:
        return TransientError(
            f"the schema registry of connection {self._connection.id} did not answer ({what}); it is asked again"
        )

    def _wrong(self, found: str, remedy: str) -> ConfigurationError:
        return ConfigurationError([Problem(file="connections", path=self._connection.id, found=found, remedy=remedy)])


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
