"""Know the schemas of a topic's values: from its registry, each kept in the storage as it was read first.

A number or a GUID means one schema for ever. What was read with a window is read the same again when the registry is
gone. One that was made again, whose numbers mean other schemas, is refused.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from makewhole.compute.decode.schema_texts import SCHEMA_HEADER, SchemaText
from makewhole.compute.keys import KeyProblem
from makewhole.lake.storage import Storage
from makewhole.model.connection import RegistryConnection
from makewhole.model.errors import RefusedError, TransientError
from makewhole.registry import Registry, SchemaNotFoundError

_ASKED_AGAIN_SECONDS = 60.0
_FOLDER = "_schemas"
_AVRO = "AVRO"


class FileSchema:
    """One schema, which all values of a topic are of."""

    are_named, header = False, SCHEMA_HEADER

    def __init__(self, text: str) -> None:
        self._text = SchemaText(text)

    def text(self, name: str) -> SchemaText:  # noqa: ARG002 - there is one
        return self._text

    def newest(self) -> tuple[SchemaText, bytes]:
        return self._text, b""


class RegistrySchemas:
    """The schemas of a registry, of one kind (`AVRO`, `PROTOBUF`). `header`: the one by which records name them."""

    are_named = True

    def __init__(
        self,
        connection: RegistryConnection,
        storage: Storage,
        kind: str,
        form: str,
        subject: str,
        header: str = SCHEMA_HEADER,
    ) -> None:
        self.header = header
        self._connection, self._registry, self._storage = connection, Registry(connection), storage
        self._kind, self._form, self._subject = kind, form, subject
        server = hashlib.sha256(connection.url.encode()).hexdigest()[:16]
        self._folder = f"{_FOLDER}/{server}"
        self._known: dict[str, SchemaText] = {}
        self._absent: dict[str, float] = {}
        self._newest: tuple[float, int] | None = None

    def text(self, name: str) -> SchemaText:
        """Return a schema. Raises as `SchemaTexts.text`."""
        if name not in self._known:
            if time.monotonic() < self._absent.get(name, 0.0):
                raise KeyProblem(f"schema {name} is not in the registry")
            self._known[name] = self._read(name, self._kept(name))
        return self._known[name]

    def newest(self) -> tuple[SchemaText, bytes]:
        """Return the newest schema of the subject, with the prefix of its values. Raises as `text`."""
        if self._newest is None or time.monotonic() > self._newest[0]:
            self._newest = (time.monotonic() + _ASKED_AGAIN_SECONDS, self._newest_number())
        number = self._newest[1]
        return self.text(f"ids/{number}"), b"\x00" + number.to_bytes(4, "big")

    def _newest_number(self) -> int:
        try:
            return int(self._registry.newest(self._subject, self._form)["id"])
        except SchemaNotFoundError:
            raise KeyProblem(f"subject {self._subject} is not in the registry; name it as `subject`") from None

    def _kept(self, name: str) -> Mapping[str, Any]:
        """Return the schema as it was read first; what the registry says now must be the same."""
        path = f"{self._folder}/{name}.json"
        kept = self._storage.read_if_exists(path)
        try:
            now = json.dumps(_what_counts(self._registry.schema(name, self._form)), sort_keys=True).encode()
        except SchemaNotFoundError:
            if kept is None:
                self._absent[name] = time.monotonic() + _ASKED_AGAIN_SECONDS
                raise KeyProblem(f"schema {name} is not in the registry") from None
            now = kept
        except TransientError:
            if kept is None:
                raise
            now = kept
        if kept is None:
            self._storage.write_once(path, now)
        elif kept != now:
            raise RefusedError(
                f"schema {name} of connection {self._connection.id} is another one now than when it was read first "
                f"({self._storage.uri(path)}): the registry was made again, and records from before would be read by "
                "wrong schemas. Give the new registry another address, or remove that file if no record is left that "
                "was written before"
            )
        read: Mapping[str, Any] = json.loads(now)
        return read

    def _read(self, name: str, schema: Mapping[str, Any]) -> SchemaText:
        kind = schema.get("schemaType") or _AVRO
        if kind != self._kind:
            raise KeyProblem(f"schema {name} is one of {kind}, and not of {self._kind}")
        return _as_text(_what_counts(schema))


def _what_counts(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a registry's answer that say what a value is."""
    return {
        "schema": answer["schema"],
        "schemaType": answer.get("schemaType") or _AVRO,
        "references": [
            {**_what_counts(reference), "name": reference["name"]} for reference in answer.get("references") or ()
        ],
    }


def _as_text(schema: Mapping[str, Any]) -> SchemaText:
    references = tuple((reference["name"], _as_text(reference)) for reference in schema["references"])
    return SchemaText(schema["schema"], references)
