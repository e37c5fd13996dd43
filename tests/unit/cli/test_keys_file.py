"""Test that a file of keys is read a key a line, whatever the keys are made of."""

from pathlib import Path

import pytest

from makewhole.cli.run import read_keys
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit


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
        f"command line: --keys: {file} is not UTF-8: byte 2 is no part of a character. Write the keys as `makewhole "
        "findings --json` has them, one a line, in UTF-8"
    )
