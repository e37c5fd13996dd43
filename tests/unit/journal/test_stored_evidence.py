"""Test evidence that is read from its text when it is asked for."""

import json
import pickle

import msgspec
import pytest

from makewhole.journal.findings.stored_evidence import StoredEvidence

pytestmark = pytest.mark.unit

FIELDS = {
    "source": [{"place": "3:1898", "offset": 2**53 + 1, "time": "2026-11-25T13:00:40+00:00"}],
    "values": {"délai": "1.10", "note": 'a "b"\n\U0001f600'},
    "beyond": 2**70,
    "ratio": 0.1,
    "nothing": None,
    "in_source": True,
}


def test_it_is_what_json_says_of_the_text() -> None:
    text = json.dumps(FIELDS)
    evidence = StoredEvidence(text)
    assert evidence == json.loads(text) == FIELDS
    assert {**evidence} == FIELDS
    assert (len(evidence), list(evidence)) == (len(FIELDS), list(FIELDS))
    assert "nothing" in evidence
    assert "absent" not in evidence
    assert evidence.get("absent", ()) == ()


def test_it_is_the_same_after_a_file_read_or_not() -> None:
    evidence = StoredEvidence(json.dumps(FIELDS))
    unread = pickle.dumps(evidence)
    assert evidence["in_source"]
    assert pickle.dumps(evidence) == unread
    assert pickle.loads(unread) == FIELDS


@pytest.mark.parametrize("text", ["[1]", '{"a": 1', "{'a': 1}", ""])
def test_text_that_is_no_object_is_an_error(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        StoredEvidence(text).get("a")
