"""Test that a file of keys is read a key a line, whatever the keys are made of."""

import json
from pathlib import Path

import pytest

from makewhole.cli.runs.run import read_keys
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit

REMEDY = (
    "Write the keys one a line, in UTF-8; or name a file that ends in .jsonl, with what `makewhole findings --json` "
    "prints"
)


def test_only_line_feeds_end_a_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    keys = ["a\u2028b", "a\x85b", "a\x0bb\x0cc", "a\x1cb", "a\rb", " ", '["x, y","ü"]']
    file.write_bytes("\ufeff".encode() + "\r\n".join(keys).encode() + b"\n\n")

    assert read_keys(file) == keys


def test_a_file_that_is_no_text_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"a\n\xff\n")

    with pytest.raises(ConfigurationError) as caught:
        read_keys(file)

    assert str(caught.value) == (
        f"command line: --keys: {file} is not UTF-8: byte 2 is no part of a character. {REMEDY}"
    )


def test_lines_of_json_may_have_keys_with_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "findings.jsonl"
    lines = [{"key": "a\nb", "verdict": "missing"}, 'say "hi"', ["x, y", "ü\n"], {"key": '["1","2"]'}]
    file.write_text("\n\n".join(json.dumps(line) for line in lines) + "\n")

    assert read_keys(file) == ["a\nb", 'say "hi"', '["x, y", "ü\\n"]', '["1","2"]']


@pytest.mark.parametrize(
    ("line", "why"),
    [("{", "is no JSON"), ('{"hop": "a"}', "names no key"), ("7", "names no key"), ("null", "names no key")],
)
def test_a_line_of_json_without_a_key_is_wrong_usage(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "keys.jsonl"
    file.write_text(f'"a"\n{line}\n')

    with pytest.raises(ConfigurationError) as caught:
        read_keys(file)

    assert str(caught.value) == f"command line: --keys: line 2 of {file} {why}. {REMEDY}"
