"""Test that masked evidence has no value and no hash that can be guessed, and is compared as exactly as before."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.model.errors import CorruptionError
from makewhole.signing.mask import Mask, compared_values

pytestmark = pytest.mark.unit

KEY, OTHER = bytes(range(32)), bytes(32)
ANNA = "masked:f2ff2c0afdd8cdc0ee4a0a5eecdb2631"
MASK = Mask(columns=frozenset({"name", "wage"}), key=KEY)
TEXTS = st.one_of(st.none(), st.text(st.characters(exclude_categories=())))


def test_a_value_is_a_digest_by_column_and_key() -> None:
    anna = MASK.text("name", "anna")
    assert anna == ANNA
    assert (MASK.text("name", "anna"), MASK.text("name", None), MASK.text("city", "anna")) == (anna, None, "anna")
    others = [
        MASK.text("wage", "anna"),
        MASK.text("name", "Anna"),
        Mask(columns=MASK.columns, key=OTHER).text("name", "anna"),
    ]
    assert len({anna, *others}) == 4
    assert repr(MASK).count("key") == 0


def test_evidence_that_was_masked_has_further_columns_masked_and_its_mark_and_hashes_as_they_were() -> None:
    before = Mask(columns=frozenset({"name"}), key=KEY).evidence(
        {"row_hash": "7", "values": {"name": "anna", "city": "paris"}}
    )
    for columns in (frozenset({"name", "city"}), None):
        mask = Mask(columns=columns, key=OTHER)
        assert mask.evidence(before) == {**before, "values": {"name": ANNA, "city": mask.text("city", "paris")}}
    assert Mask(columns=None, key=KEY).evidence({"values": {"name": "anna"}}) == {
        "values": {"name": ANNA},
        "masked": {"columns": ["*"], "key": MASK.id},
    }


@given(st.tuples(TEXTS, TEXTS))
def test_masked_values_are_equal_where_the_values_are(pair: tuple[str | None, str | None]) -> None:
    first, second = pair
    assert (MASK.text("name", first) == MASK.text("name", second)) == (first == second)


def test_every_value_of_evidence_is_masked_and_the_rest_stays() -> None:
    evidence: dict[str, Any] = {
        "in_source": True,
        "row_hash": "7",
        "values": {"name": "anna", "city": "paris", "wage": None},
        "columns": {"name": {"source": "anna", "target": "anne"}, "city": {"source": "paris", "target": None}},
        "conflict": {"source": [{"place": "0:1", "values": {"name": "anna"}}], "target": []},
        "compared": {"source": {"name": "anna"}, "store": [{"name": "anne"}]},
        "group": {"records": 2, "expected": {"wage": "12.5"}, "found": {"wage": "12"}},
        "source_elsewhere": [{"place": "0:0", "row_hash": "7"}, {"place": "0:2"}],
        "latest": {"place": "0:1", "row_hash": None},
    }

    masked = MASK.evidence(evidence)

    assert all(text not in json.dumps(masked) for text in ("anna", "anne", '"12'))
    assert masked["values"] == {"name": MASK.text("name", "anna"), "city": "paris", "wage": None}
    assert masked["columns"]["name"] == {
        side: MASK.text("name", evidence["columns"]["name"][side]) for side in ("source", "target")
    }
    assert masked["columns"]["city"] == {"source": "paris", "target": None}
    assert masked["compared"] == compared_values(MASK, evidence["compared"])
    assert masked["source_elsewhere"] == [{"place": "0:0", "row_hash": masked["row_hash"]}, {"place": "0:2"}]
    assert masked["latest"] == {"place": "0:1", "row_hash": None}
    assert masked["masked"] == {"columns": ["name", "wage"], "key": MASK.id}
    assert json.loads(json.dumps(masked)) == masked
    assert MASK.unseal(masked["row_hash"]) == 7


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_a_sealed_hash_is_opened_by_its_own_key_alone(row_hash: int) -> None:
    sealed = MASK.seal(row_hash)
    assert MASK.unseal(sealed) == row_hash
    with pytest.raises(CorruptionError, match="was not sealed with the mask's key"):
        Mask(columns=MASK.columns, key=OTHER).unseal(sealed)


@pytest.mark.parametrize("text", ["", "7", "18446744073709551615"])
def test_a_hash_that_was_not_sealed_is_refused(text: str) -> None:
    with pytest.raises(CorruptionError, match="was not sealed with the mask's key"):
        MASK.unseal(text)


def test_a_copy_is_masked_as_its_evidence_is() -> None:
    copy = {"place": "0:1", "row_hash": 7, "c:name": "anna", "c:city": None, "version": None}
    assert MASK.copy(copy) == {**copy, "row_hash": MASK.seal(7), "c:name": MASK.text("name", "anna")}
