"""Compile a schema that is written as `.proto` text, by Google's compiler where it is installed."""

import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pb2

from makewhole.compute.decode.schema_texts import SchemaText

_COMPILER = "grpc_tools"
_MAIN, _OUTPUT = "schema_of_a_topic.proto", "compiled.desc"
_MOST_SECONDS = 60
_MOST_SCHEMAS_KEPT = 256


class TextProblem(ValueError):  # noqa: N818 - the reason that a record is reported with
    """The reason why a text could not be compiled."""


def compile_text(text: SchemaText) -> Any:
    """Return the description of the file that a text is, without those that it imports; they are in its references.

    Raises:
        TextProblem: no compiler is installed, or it refuses the text.
    """
    outcome = _outcome(text)
    if isinstance(outcome, TextProblem):
        raise outcome
    return descriptor_pb2.FileDescriptorProto.FromString(outcome)


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def _outcome(text: SchemaText) -> bytes | TextProblem:
    """Compile a text once, whatever comes of it: many records may name it."""
    try:
        return _compile(text)
    except TextProblem as problem:
        return problem


def _compile(text: SchemaText) -> bytes:
    spec = find_spec(_COMPILER)
    if spec is None or not spec.submodule_search_locations:
        raise TextProblem(
            "the registry has it as .proto text, and what compiles that is not installed: install the package "
            "grpcio-tools, or register the serialized form"
        )
    with TemporaryDirectory(prefix="makewhole-proto-") as name:
        folder = Path(name)
        (folder / _MAIN).write_text(text.text, encoding="utf-8")
        _write_imports(folder, text)
        known = Path(spec.submodule_search_locations[0]) / "_proto"
        return _compiled(folder, known)


def _write_imports(folder: Path, text: SchemaText) -> None:
    for imported, reference in text.references:
        path = PurePosixPath(imported)
        if path.is_absolute() or ".." in path.parts or imported == _MAIN:
            raise TextProblem(f"it imports {imported!r}, which is not the name of a file beside it")
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(reference.text, encoding="utf-8")
        _write_imports(folder, reference)


def _compiled(folder: Path, known: Path) -> bytes:
    command = [sys.executable, "-m", f"{_COMPILER}.protoc", f"-I{folder}", f"-I{known}"]
    try:
        done = subprocess.run(
            [*command, f"--descriptor_set_out={folder / _OUTPUT}", _MAIN],
            capture_output=True,
            timeout=_MOST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TextProblem(f"it is .proto text, and its compiler did not answer ({type(error).__name__})") from None
    if done.returncode:
        said = next(iter(done.stderr.decode(errors="replace").splitlines()), "without a word")
        raise TextProblem(f"it is .proto text that its compiler refuses: {said}")
    files = descriptor_pb2.FileDescriptorSet.FromString((folder / _OUTPUT).read_bytes())
    return bytes(files.file[-1].SerializeToString())
