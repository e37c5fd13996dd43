"""Fuzz the reader of pipeline files: a pipeline or named problems, and never an exception."""

import json
import re
import tempfile
from pathlib import Path
from random import Random

import yaml
from jsonschema import Draft202012Validator

from makewhole.config.json_schema import pipeline_schema
from makewhole.config.pipeline_file import PipelineFile, read_file, scheduled_pipelines
from makewhole.model.pipeline import Pipeline
from makewhole.window.configuration import configuration_document, judging_sha256
from tests.fuzz.mutations import mutated
from tests.unit.config.test_json_schema import TEXTS, as_editors_read

_WORD = re.compile(rb"[A-Za-z_$.][\w$.()-]*|[\d.]+[a-z]?")
_ODD = (
    *(b"null", b"~", b"''", b"[]", b"{}", b"[[]]", b"{a: b}", b"*a", b"&a x", b"!!binary aGk=", b"!x y", b"? x", b"<<"),
    *(b"true", b"on", b"0", b"-1", b"1e309", b".inf", b".nan", b"0x1f", b"0o17", b"1_000", b"9" * 5000, b"2" * 30),
    *(b"2013-01-31", b"2013-01-31T12:00:00Z", b"0001-01-01", b"9999-12-31T23:59:59-23:59", b"12:30:45"),
    *(b"99999999999d", b"1d", b"-5m", b"0s", b"1.5h", "\u00fc".encode(), "\U0001f680".encode(), b'"\\ud800"'),
    *(b'"\\0"', b'"\\n"', b"a.b.c", b"$", b"$.", b"$..x", b"kafka.key.", b"header:", b"event:", b"decimal(99,99)"),
    *(b"* * * * *", b"@daily", b"61 * * * *", b"*/0 * * * *", b"a = b", b"a = 'x' and", b"(" * 40, b"'" * 3),
)


class PipelineFiles:
    """Texts that are nearly pipeline files."""

    def __init__(self) -> None:
        self._seeds: list[bytes] = [text.encode() for text in TEXTS]
        words: set[bytes] = {word for seed in self._seeds for word in _WORD.findall(seed)}
        self._words: list[bytes] = [*sorted(words), *_ODD * 4]
        self._schema = Draft202012Validator(pipeline_schema())
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))

    def draw(self, random: Random) -> bytes:
        """Return a file with a few words or lines that are others, or with damaged bytes."""
        content = random.choice(self._seeds)
        if not random.randrange(4):
            return mutated(content, random, self._seeds)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            content = (
                self._other_line(content, random) if random.randrange(3) == 0 else self._other_word(content, random)
            )
        return content

    def _other_word(self, content: bytes, random: Random) -> bytes:
        places = list(_WORD.finditer(content))
        if not places:
            return content
        place = random.choice(places)
        return content[: place.start()] + random.choice(self._words) + content[place.end() :]

    def _other_line(self, content: bytes, random: Random) -> bytes:
        lines = content.splitlines(keepends=True) or [b""]
        at = random.randrange(len(lines))
        others = random.choice(self._seeds).splitlines(keepends=True)
        match random.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[random.randrange(len(lines))])
            case 2:
                lines.insert(at, random.choice(others))
            case _:
                lines[at] = b" " * random.randrange(9) + lines[at].lstrip()
        return b"".join(lines)

    def check(self, content: bytes) -> None:
        """Hold the reader to an answer: problems that name a place and a remedy, or a pipeline whose document is the
        same each time, and which editors take, too."""
        path = self._folder / "fuzzed.yaml"
        path.write_bytes(content)
        file = read_file(path)
        assert read_file(path) == file, "a second reading differs"
        assert (file.pipeline is None) == bool(file.problems)
        scheduled = scheduled_pipelines([self._folder])
        assert list(scheduled) == ([] if file.name is None else [file.name])
        for problem in file.problems:
            assert problem.path, problem
            assert problem.found, problem
            assert problem.remedy, problem
            str(problem).encode()
        if file.pipeline is not None:
            self._check_pipeline(file, file.pipeline, content)

    def _check_pipeline(self, file: PipelineFile, pipeline: Pipeline, content: bytes) -> None:
        assert file.name == pipeline.name
        document = configuration_document(pipeline)
        assert json.loads(json.dumps(document, allow_nan=False)) == document
        assert judging_sha256(pipeline) == judging_sha256(pipeline)
        text = content.decode("utf-8-sig")
        again = self._folder / "fuzzed.yaml"
        again.write_text(_in_other_words(text), encoding="utf-8")
        assert read_file(again).pipeline == pipeline, "the same tree in another style is another pipeline"
        complaints = [error.message for error in self._schema.iter_errors(as_editors_read(text))]
        assert not complaints, complaints


def _in_other_words(text: str) -> str:
    """Return the same tree as PyYAML writes it: in blocks, without comments and anchors, each scalar as it is."""
    return str(
        yaml.serialize(yaml.compose(text, Loader=yaml.SafeLoader), Dumper=_Plain, allow_unicode=True, width=10**6)
    )


class _Plain(yaml.SafeDumper):
    """Writes an alias out."""

    def anchor_node(self, node: yaml.Node) -> None:
        """Give no node an anchor."""
        self.anchors[node] = None
        for part in getattr(node, "value", ()) if not isinstance(node, yaml.ScalarNode) else ():
            for inner in part if isinstance(part, tuple) else (part,):
                self.anchor_node(inner)

    def serialize_node(self, node: yaml.Node, parent: yaml.Node | None, index: object) -> None:
        """Write a node, also one that was written."""
        self.serialized_nodes.pop(node, None)
        super().serialize_node(node, parent, index)
