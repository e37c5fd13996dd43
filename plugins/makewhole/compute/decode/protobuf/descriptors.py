"""Read descriptions of Protobuf messages: as a registry or a file has them, with what they import."""

import base64
import binascii
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from makewhole.compute.decode.protobuf.proto_text import TextProblem, compile_text
from makewhole.compute.decode.schema_texts import SchemaText

_WELL_KNOWN = "google/protobuf/"
_MOST_SCHEMAS_KEPT = 256


class DescriptorProblem(ValueError):  # noqa: N818 - the reason that a record is reported with
    """The reason why a schema cannot be used."""


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def message_at(text: SchemaText, index: tuple[int, ...]) -> Any:
    """Return the descriptor of a message of a registered file: by its number there, and those of the messages within.

    Raises:
        DescriptorProblem: the schema cannot be read, or has no such message.
    """
    pool = descriptor_pool.DescriptorPool()
    main = _add(pool, text, None)
    messages = list(pool.FindFileByName(main.name).message_types_by_name.values())
    message = None
    for number in index:
        if not 0 <= number < len(messages):
            raise DescriptorProblem("its file has no message of this number")
        message = messages[number]
        messages = list(message.nested_types)
    return message


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def message_of_set(text: SchemaText, name: str) -> Any:
    """Return the descriptor of a message of a set of files; without a name the first of the last file.

    Raises:
        DescriptorProblem: it is no descriptor set, or has no such message.
    """
    files = descriptor_pb2.FileDescriptorSet()
    pool = descriptor_pool.DescriptorPool()
    try:
        files.ParseFromString(base64.b64decode(text.text))
        for file in files.file:
            _add_file(pool, file)
        last = pool.FindFileByName(files.file[-1].name)
        return pool.FindMessageTypeByName(name) if name else next(iter(last.message_types_by_name.values()))
    except KeyError:
        raise DescriptorProblem(f"it has no message {name}") from None
    except (DecodeError, TypeError, IndexError, StopIteration, binascii.Error):
        raise DescriptorProblem("it is no descriptor set with its imports (protoc --include_imports)") from None


def named_message(text: SchemaText, name: str) -> tuple[Any, tuple[int, ...]]:
    """Return the descriptor of a message of a registered file, and its index; without a name the first.

    Raises:
        DescriptorProblem: the schema cannot be read, or has no such message.
    """
    first = message_at(text, (0,))
    if not name:
        return first, (0,)
    try:
        descriptor = message = first.file.pool.FindMessageTypeByName(name)
    except KeyError:
        raise DescriptorProblem(f"it has no message {name}") from None
    index: tuple[int, ...] = ()
    while message.containing_type is not None:
        index = (list(message.containing_type.nested_types).index(message), *index)
        message = message.containing_type
    return descriptor, (list(first.file.message_types_by_name).index(message.name), *index)


def _add(pool: Any, text: SchemaText, name: str | None) -> Any:
    """Add a file and those that it imports to a pool; return its description. `name`: how others import it."""
    for imported, reference in text.references:
        _add(pool, reference, imported)
    try:
        file = _described(text)
        if name is not None:
            file.name = name
        _add_file(pool, file)
    except TextProblem as problem:
        raise DescriptorProblem(str(problem)) from None
    except (DecodeError, TypeError, KeyError, ValueError):
        raise DescriptorProblem("it is no description of a file and of what it imports") from None
    return file


def _described(text: SchemaText) -> Any:
    """Return the description of a file, which a registry has serialized, in base64, or as `.proto` text."""
    try:
        serialized = base64.b64decode(text.text, validate=True)
    except binascii.Error:
        return compile_text(text)
    return descriptor_pb2.FileDescriptorProto.FromString(serialized)


def _add_file(pool: Any, file: Any) -> None:
    for known in _well_known(file):
        _add_once(pool, known)
    _add_once(pool, file)


def _add_once(pool: Any, file: Any) -> None:
    try:
        pool.FindFileByName(file.name)
    except KeyError:
        pool.Add(file)
        pool.FindFileByName(file.name)  # raises where an import is missing


def _well_known(file: Any) -> Iterator[Any]:
    """Yield Google's own files that a file imports, each behind those that it imports itself."""
    for name in file.dependency:
        if name.startswith(_WELL_KNOWN):
            module = import_module(f"google.protobuf.{name.removeprefix(_WELL_KNOWN).removesuffix('.proto')}_pb2")
            known = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
            yield from _well_known(known)
            yield known
