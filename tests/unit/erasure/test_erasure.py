"""Test that an erased key is known again by its keyed hash alone."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from makewhole.model.retention import Erasure, erased_among, mac_of, prefix_of

pytestmark = pytest.mark.unit

KEY = "0123456789abcdef0123456789abcdef"
SECRET = "11" * 32
ERASURE = Erasure(
    id=3,
    secret=SECRET,
    key_mac=mac_of(SECRET, KEY),
    prefix=prefix_of(KEY),
    reason="r",
    asked_by="dana",
    asked_at=datetime(2026, 3, 4, 5, 6, tzinfo=UTC),
    erased_at=None,
)


def test_only_the_key_itself_is_known_again() -> None:
    same_bits = "f" * 12 + KEY[12:16] + "0" * 16
    erased = erased_among([ERASURE], [KEY, same_bits, "0" * 32])
    assert erased == {KEY: "erased on request at 2026-03-04 05:06 UTC (erasure 3)"}
    assert erased_among([], [KEY]) == {}


def test_the_hash_depends_on_the_secret_and_the_secret_does_not_show() -> None:
    other = replace(ERASURE, secret="22" * 32)
    assert not other.is_of(KEY)
    assert SECRET not in repr(ERASURE)


def test_the_bits_are_those_of_the_bucket() -> None:
    assert int(KEY[:16], 16) % 65_536 == prefix_of(KEY)


def test_what_stands_for_an_erased_key_is_erased_too() -> None:
    assert (len(ERASURE.blind), int(ERASURE.blind, 16) > 0, ERASURE.blind != KEY) == (32, True, True)
    assert erased_among([ERASURE], [ERASURE.blind]) == {ERASURE.blind: "erased on request"}
