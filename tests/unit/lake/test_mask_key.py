"""Test the key of masked values: made once, for its owner alone, and never taken for another."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from makewhole.lake.mask_key import MASK_KEY, ensure_mask_key, find_mask_key, read_mask_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError

pytestmark = pytest.mark.unit


def test_of_many_that_make_a_key_at_once_all_have_the_same(tmp_path: Path) -> None:
    storage = Storage(root=str(tmp_path / "storage"))
    assert find_mask_key(storage) is None

    with ThreadPoolExecutor(8) as threads:
        keys = {*threads.map(lambda _: ensure_mask_key(storage), range(32))}

    assert keys == {(tmp_path / "storage" / MASK_KEY).read_bytes()}
    assert [len(key) for key in keys] == [32]
    assert stat.S_IMODE((tmp_path / "storage" / MASK_KEY).stat().st_mode) == 0o600
    assert {read_mask_key(storage), find_mask_key(storage)} == keys
    assert ensure_mask_key(Storage(root=str(tmp_path / "other"))) not in keys


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_what_is_no_key_is_neither_used_nor_replaced(tmp_path: Path, content: bytes) -> None:
    storage = Storage(root=str(tmp_path))
    storage.write_bytes(MASK_KEY, content)

    for read in (read_mask_key, find_mask_key, ensure_mask_key):
        with pytest.raises(CorruptionError, match=r"mask\.key is no key of masked values: restore it from a copy"):
            read(storage)
    assert storage.read_bytes(MASK_KEY) == content


def test_a_key_that_is_gone_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError, match=r"mask\.key, the key of masked values, is gone: restore it from a copy"):
        read_mask_key(Storage(root=str(tmp_path)))
