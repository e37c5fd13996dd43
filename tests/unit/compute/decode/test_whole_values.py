"""Test values that are taken as a whole: texts, bytes, and envelopes that a ledger's column holds."""

import pytest

from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.whole_values import BytesFormat, TextFormat
from makewhole.compute.keys import KeyProblem

pytestmark = pytest.mark.unit


def test_a_whole_value_is_made_as_it_is_and_anything_else_refused() -> None:
    whole = b'{"payload": {"id": 1}, "schema": {"type": "struct", "fields": [{"field": "id", "type": "int32"}]}}'
    assert ConnectFormat().encode(whole) == whole
    for payload in (b'{"id": 1}', b"[1]", b"no JSON"):
        with pytest.raises(KeyProblem):
            ConnectFormat().encode(payload)


def test_a_whole_value_is_the_field_value_and_an_empty_one_is_no_tombstone() -> None:
    assert TextFormat().document("ü".encode(), None) == {"value": "ü"}
    assert TextFormat().document(b"", None) == {"value": ""}
    assert BytesFormat().document(b"\x00\xff", None) == {"value": r"\x00ff"}
    assert BytesFormat().document(b"", None) == {"value": r"\x"}
